// Opens what is folded where a link leads into it, and everything in print.
"use strict";

(() => {
  const unfold = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id && document.getElementById(id);
    if (!target) return;
    const inside = target.querySelector(":scope > details.fold.deeper, :scope > details.fold.answers");
    if (inside) inside.open = true;
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    target.scrollIntoView();
  };
  const closed = [];
  addEventListener("hashchange", unfold);
  addEventListener("DOMContentLoaded", unfold);
  addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest('a[href^="#"]');
    if (link && link.hash === location.hash) unfold(); // a second click on the same link changes no address
  });
  addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details:not([open])")) {
      fold.open = true;
      closed.push(fold);
    }
  });
  addEventListener("afterprint", () => {
    while (closed.length) closed.pop().open = false;
  });
})();
