// How well text, borders and marks stand out from what is behind them, by WCAG's formula.
// Gives the lowest contrast of each kind on the page, and all that lies below its limit.
() => {
  const LIMITS = { text: 4.5, large: 3, border: 3, mark: 3 };
  const parse = (color) => {
    const numbers = color.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
    const unit = color.startsWith("color(") ? 255 : 1; // color(srgb 1 0 0 / 0.5)
    return [...numbers.slice(0, 3).map((one) => one * unit), numbers[3] ?? 1];
  };
  const over = ([r, g, b, alpha], under) => [r, g, b].map((one, i) => alpha * one + (1 - alpha) * under[i]);
  const light = (color) => {
    const [r, g, b] = color.map((one) => (one / 255 <= 0.04045 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  /** What is behind the content of an element. */
  const ground = (element) => {
    const layers = [];
    for (let one = element; one; one = one.parentElement) layers.push(parse(getComputedStyle(one).backgroundColor));
    return layers.reduceRight((under, layer) => over(layer, under), [255, 255, 255]);
  };
  const opacity = (element) => {
    let share = 1;
    for (let one = element; one; one = one.parentElement) share *= Number(getComputedStyle(one).opacity);
    return share;
  };
  const dialog = document.querySelector("dialog[open]");
  const shown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true })
    && element.getClientRects().length > 0 && (!dialog || dialog.contains(element)) && !element.closest(".unseen, .skip, :disabled, option, datalist");
  const lowest = {}, below = [];
  const told = (kind, element, color, behind) => {
    const [r, g, b, alpha] = parse(color);
    const ratio = contrast(over([r, g, b, alpha * opacity(element)], behind), behind);
    lowest[kind] = Math.min(lowest[kind] ?? 21, ratio);
    if (ratio < LIMITS[kind]) below.push(`${kind} ${ratio.toFixed(2)}: ${element.outerHTML.slice(0, 110).replace(/\s+/g, " ")}`);
  };
  for (const element of document.body.querySelectorAll("*")) {
    if (!shown(element)) continue;
    const style = getComputedStyle(element), outside = element.parentElement ? ground(element.parentElement) : [255, 255, 255];
    if (element instanceof SVGElement) {
      const outlined = style.stroke !== "none"; // on a picture: its outline is what is behind it
      const under = outlined ? parse(style.stroke) : ground(element.closest("svg"));
      if (element.matches("text")) told("text", element, style.fill, under);
      else if (element.matches(".scatter :is(path, rect, circle)") && style.stroke !== "none" && Number(element.getAttribute("width") ?? 1)) told("mark", element, style.stroke, ground(element.closest("svg")));
      else if (element.matches(".scatter circle")) {
        const [r, g, b, alpha] = parse(style.fill);
        told("mark", element, `rgb(${r} ${g} ${b} / ${alpha * Number(style.fillOpacity)})`, ground(element.closest("svg")));
      } else if (element.matches(".marks > :not(.under)") && (element.getAttribute("d") || Number(element.getAttribute("rx")))) {
        // Lines on pictures have a darker one under them: what they stand out from wherever they are.
        const under = parse(getComputedStyle(element.previousElementSibling).stroke);
        told("mark", element, style.stroke, over(under, [255, 255, 255]));
      }
      continue;
    }
    const words = [...element.childNodes].some((one) => one.nodeType === 3 && one.textContent.trim()) || (element.matches("input:not([type=range], [type=checkbox], [type=radio])") && element.value);
    if (words) {
      const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      told(large ? "large" : "text", element, style.color, ground(element));
    }
    const halo = style.boxShadow.match(/^(rgba?\([^)]*\)) 0px 0px 0px 1px$/)?.[1];
    if (element.matches(".track i, .class-chip .fill") && element.getBoundingClientRect().width) told("mark", element, style.backgroundColor, halo ? parse(halo).slice(0, 3) : outside);
    else if (parseFloat(style.borderTopWidth) && style.borderTopStyle !== "none" && parse(style.borderTopColor)[3] && !element.matches("progress, input[type=range], input[type=checkbox], input[type=radio]")) told("border", element, style.borderTopColor, outside);
  }
  return { lowest, below };
}
