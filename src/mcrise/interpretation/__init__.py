"""What the maps propose and trials decide: findings about one image, in plain sentences.

A map is an average over random paintings. It is good at saying where to look and poor at saying
what painting one place alone does. So places are proposed by the map, each one is painted alone,
and the model is asked again. What is printed is what those trials showed, with their numbers.

The flow, and the order in which to read:

1. `candidates`: blocks and lobes of the map, ranked by what the map expects of them.
2. `repaints`: a description of "this region, painted with this", and its pixels.
3. `search`: which repaints to ask, round by round, within a budget of model calls.
4. `controls`: the same block and color in other places, and how many of them do as much.
5. `claims`: the closed list of what may be said of a place, each with the test that it needs.
6. `findings`: what travels: `Trial`, `Control`, `Finding`, `Findings`.
7. `comparison`, `counterfactuals`: two classes; the smallest repaint that changes the answer.
8. `text`: the sentences.

A search is a generator: it yields repaints, receives answers, and returns findings. It is a pure
function of the explanation and the answers, so a run that was interrupted asks only what is
missing, and a loaded file needs no model.
"""
