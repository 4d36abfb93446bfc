// Opens what is folded where a link leads into it, and everything in print; lets the keyboard reach what scrolls, and shows
// on which side there is more of it.
"use strict";

(() => {
  const all = (selector) => document.querySelectorAll(selector);

  const unfold = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id && document.getElementById(id);
    if (!target) return;
    const inside = target.querySelector(":scope > details.deeper, :scope > details.answers");
    if (inside) inside.open = true;
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    target.scrollIntoView({ behavior: "instant" });
  };

  const SCROLLING = "article pre, article .table-wrapper, article .mathematics";

  const showMore = (box) => {
    const hidden = box.scrollWidth - box.clientWidth;
    box.classList.toggle("more-left", hidden > 1 && box.scrollLeft > 1);
    box.classList.toggle("more-right", hidden > 1 && box.scrollLeft < hidden - 1);
  };

  const makeReachable = () => {
    for (const box of all(SCROLLING)) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
      showMore(box);
    }
  };

  const closed = [];
  addEventListener("beforeprint", () => {
    for (const fold of all("details:not([open])")) {
      fold.open = true;
      closed.push(fold);
    }
  });
  addEventListener("afterprint", () => {
    while (closed.length) closed.pop().open = false;
  });

  addEventListener("hashchange", unfold);
  addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link && link.hash === location.hash) unfold(); // a second click on the same link is no change of the address
  });
  addEventListener("resize", makeReachable);
  addEventListener("toggle", makeReachable, true);
  addEventListener("scroll", ({ target }) => target.matches?.(SCROLLING) && showMore(target), { capture: true, passive: true });
  addEventListener("DOMContentLoaded", () => {
    for (const [selector, name] of [[".sidebar-drawer", "All pages"], [".toc-drawer", "This page"]]) {
      for (const aside of all(selector)) aside.setAttribute("aria-label", name);
    }
    unfold();
    makeReachable();
  });
})();
