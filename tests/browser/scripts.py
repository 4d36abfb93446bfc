"""What runs inside the page: bodies of functions; those that wait give their result to their last argument."""

# setTimeout: after what a handler of the page has put off with setTimeout
SETTLE = """
const done = arguments[arguments.length - 1];
const painted = () => requestAnimationFrame(() => requestAnimationFrame(() => done()));
document.fonts.ready.then(() => setTimeout(painted));
"""

FORGET = """
try {
  localStorage.clear();
  sessionStorage.clear();
} catch {} // about:blank has no storage
"""

# By way of another view, so that every element is made again.
VISIT = """
document.activeElement.blur();
for (const hash of [/view=(?!home|tour)/.test(arguments[0]) ? "#" : "#view=model", arguments[0]]) {
  history.replaceState(null, "", hash);
  dispatchEvent(new PopStateEvent("popstate"));
}
scrollTo(0, 0);
"""

# describe(element): how a message names it
DESCRIBE = """
const describe = (element) => {
  const names = [...element.attributes].filter(a => ["id", "class", "href", "type", "name"].includes(a.name));
  const opening = [element.tagName.toLowerCase(), ...names.map(a => `${a.name}="${a.value}"`)].join(" ");
  return `<${opening}>${element.textContent.trim().replace(/\\s+/g, " ").slice(0, 40)}`;
};
"""

BROKEN_IMAGES = """
const done = arguments[arguments.length - 1];
const images = [...document.images];
for (const image of images) image.loading = "eager";
Promise.allSettled(images.map(image => image.decode())).then(() =>
  done(images.filter(image => !image.naturalWidth).map(image => image.currentSrc || image.outerHTML)));
"""

OVERFLOW = """
const width = document.documentElement.clientWidth, whole = document.scrollingElement.scrollWidth;
if (whole <= width) return [];
const contained = (element) => {
  for (let box = element.parentElement; box && box !== document.body; box = box.parentElement)
    if (getComputedStyle(box).overflowX !== "visible") return true;
  return false;
};
const beyond = [...document.body.querySelectorAll("*")]
  .filter(element => element.getBoundingClientRect().right + scrollX > width + 1 && !contained(element))
  .map(element => `${describe(element)} ends at ${Math.round(element.getBoundingClientRect().right + scrollX)}`);
return [`the page is ${whole} px wide in a window of ${width}`, ...beyond];
"""

AXE = """
const done = arguments[arguments.length - 1];
const told = (violation) => violation.nodes.map(node =>
  `${violation.impact}, ${violation.id}: ${violation.help}\\n  ${node.target.join(" ")}: ${node.html}\\n  ` +
  node.failureSummary.replace(/\\n/g, "\\n  "));
const only = arguments.length > 1 ? {runOnly: arguments[0]} : {};
axe.run(document, {resultTypes: ["violations"], preload: false, ...only}).then(results =>
  done(results.violations.filter(v => ["serious", "critical"].includes(v.impact)).flatMap(told)));
"""

# The focus is visible if the element is in the window, and it, the box around it or the element after it (the label
# of a hidden radio button) looks different with the focus from how it looks once the focus has moved on.
BEFORE_TABS = """
const still = document.createElement("style");
still.textContent = "*, *::before, *::after { transition: none !important; animation: none !important; " +
  "scroll-behavior: auto !important }";
document.head.append(still);
const SEEN = ["outlineStyle", "outlineWidth", "outlineColor", "boxShadow", "borderTopColor", "borderBottomColor",
  "borderTopWidth", "backgroundColor", "color", "textDecorationLine", "stroke", "strokeWidth", "fill"];
const look = (element) => JSON.stringify([element, element.parentElement, element.nextElementSibling]
  .filter(Boolean).flatMap(each => SEEN.map(name => getComputedStyle(each)[name])));
const inWindow = (element) => {
  const {left, right, top, bottom} = element.getBoundingClientRect();
  return right > 0 && bottom > 0 && left < innerWidth && top < innerHeight;
};
window.tabStops = {describe, look, inWindow, still, passed: [], visible: []};
"""

AFTER_TAB = """
const {passed, visible, look, inWindow, describe} = window.tabStops;
const now = document.activeElement, last = passed[passed.length - 1];
if (last) visible.push(last.seen && look(last.element) !== last.look);
if (!now || now === document.body || passed.some(({element}) => element === now)) return null;
passed.push({element: now, look: look(now), seen: inWindow(now)});
// what names most elements; the browser is asked for the names of the others
return [describe(now), (now.ariaLabel ?? now.labels?.[0]?.textContent ?? now.textContent).trim()];
"""

AFTER_TABS = """
const {passed, visible, look, still} = window.tabStops;
const last = passed[visible.length];
if (last) visible.push(last.seen && look(last.element) !== last.look);
still.remove();
delete window.tabStops;
return visible;
"""
