// Cards of many jobs together: their classes, colors and mean maps, and which are unlike the rest.

const SEPARATOR = " · ";
const isOf = ({ label, model }, { job, card }) => label === card.of.label && model === job.model;

/** Classes with their images, mean effects and mean maps; most images first. A class of two models is two. */
export function byClass(known) {
  const groups = new Map(), several = new Set(known.map(({ job }) => job.model)).size > 1;
  for (const one of known) {
    const name = several ? one.card.of.label + SEPARATOR + one.job.model : one.card.of.label;
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(one);
  }
  return [...groups].map(([name, members]) => {
    const judged = members.filter(({ card }) => card.right !== null), effects = {}, sums = {};
    for (const { card } of members) {
      card.fills.forEach((fill, k) => {
        sums[fill.name] ??= { n: 0, effect: 0, map: Array.from({ length: 8 }, () => new Float32Array(8)) };
        const sum = sums[fill.name];
        sum.n += 1;
        sum.effect += fill.effect;
        card.maps[k].forEach((row, r) => row.forEach((value, c) => { sum.map[r][c] += value; }));
      });
    }
    for (const [name, { n, effect, map }] of Object.entries(sums)) {
      effects[name] = effect / n;
      map.forEach((row) => row.forEach((value, c) => { row[c] = value / n; }));
    }
    const means = Object.fromEntries(Object.entries(sums).map(([name, { map }]) => [name, map]));
    return { name, label: members[0].card.of.label, model: members[0].job.model, n: members.length, members, effects, means, accuracy: judged.length ? judged.filter(({ card }) => card.right).length / judged.length : null };
  }).sort((one, other) => other.n - one.n || one.name.localeCompare(other.name));
}

/** The colors of all images, those used most first. */
export function colorsOf(known) {
  const found = new Map();
  for (const { card } of known) for (const fill of card.fills) found.set(fill.name, { ...fill, n: (found.get(fill.name)?.n ?? 0) + 1 });
  return [...found.values()].sort((one, other) => other.n - one.n).slice(0, 16);
}

/** How far an image's maps are from the mean of its class. */
export function unlikeness(image, classes) {
  const { card } = image, { means, n } = classes.find((one) => isOf(one, image));
  if (n < 3) return 0;
  let sum = 0;
  card.fills.forEach((fill, k) => card.maps[k].forEach((row, r) => row.forEach((value, c) => { sum += (value - means[fill.name][r][c]) ** 2; })));
  return Math.sqrt(sum / card.fills.length);
}
