"""Diagnostics: what a user should know before trusting a map, in sentences."""

from .masks import Plan


def diagnose(
    plan: Plan,
    n_masks: int,
    untouched: float,
    mean: float,
    spread: float,
    relative_error: float,
    jitter: float = 0.0,
) -> tuple[str, ...]:
    """Look for the usual reasons why a map says little.

    `untouched` is the target's score on the image as it is, `mean` and `spread` its mean and
    standard deviation under masks; two answers to the same images were `jitter` apart.
    """
    if spread == 0:
        return (
            f"the score was {mean:.3g} under every mask: as far as these fills can tell, the model "
            "does not look at the image",
        )
    found = []
    if jitter:
        found.append(
            f"the model answers the same images differently each time, by up to {jitter:.2g}: is "
            "dropout on, or an image changed at random on its way in? Maps are noisier for it"
        )
    if untouched > 0.1 and abs(mean) < 0.1 * untouched and plan.mask_prob > 0.1:
        gentler = max(0.1, round(0.4 * plan.mask_prob, 1))
        found.append(
            f"under masks the score averages {mean:.2g} (untouched {untouched:.2g}): at mask_prob "
            f"{plan.mask_prob:g} the model sees little; try {gentler:g}"
        )
    if relative_error > 1:
        found.append(
            f"the map cannot be told from noise yet: {3 * n_masks:,} more masks would halve its "
            "error"
        )
    elif relative_error > 0.5:
        found.append(
            f"the map is noisy (relative error {relative_error:.2f}): {3 * n_masks:,} more masks "
            "would halve it"
        )
    return tuple(found)
