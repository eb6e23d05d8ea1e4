"""What the maps propose and trials decide: findings about one image, in plain sentences.

A map is an average over random paintings. It is good at saying where to look and poor at saying
what painting one place alone does. So places are proposed by the map, each one is painted alone,
and the model is asked again. What is printed is what those trials showed, with their numbers.

The flow, and the order in which to read:

1. `candidates`: blocks and lobes of the map, ranked by what the map expects of them.
2. `repaints`: a description of "this region, painted with this", and its pixels.
3. `search`: which repaints to ask, round by round, within a budget of model calls; `inquiry`: what
   was asked and answered so far; `combinations`: places that stand in for each other or must match.
4. `controls`: the same block and color in other places, and how many of them do as much.
5. `causes`: the tests of a place; `claims`: the closed list of what may be said of it.
6. `findings`: what travels: `Trial`, `Control`, `Finding`, `Findings`; `score_change`: what counts
   as a change of a score.
7. `conclusions`: findings from stored answers, without a model.
8. `trials`: a repaint of one's own, two classes compared, the smallest repaint that changes the
   answer; `trial_calls`: asking, storing and resuming trials.
9. `text`: the sentences. `regions`: lobes of a map, for audits and differences.

A search is a generator: it yields repaints, receives answers, and returns findings. It is a pure
function of the explanation and the answers, so a run that was interrupted asks only what is
missing, and a loaded file needs no model.
"""
