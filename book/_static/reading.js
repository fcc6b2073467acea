// The contents panel of a phone closes when an entry is tapped: what is asked for lies behind it.
document.addEventListener("DOMContentLoaded", () => {
  for (const panel of document.querySelectorAll("dialog[id$='sidebar-modal']")) {
    panel.addEventListener("click", (event) => {
      const link = event.target.closest("a[href]");
      if (!link || link.pathname !== location.pathname) return;
      const target = document.getElementById(decodeURIComponent(link.hash.slice(1)));
      // The theme gives the focus back to the button; whoever uses a keyboard wants to be at the target.
      panel.addEventListener("close", () => setTimeout(() => {
        const heading = target?.querySelector("h1, h2, h3, h4") || target;
        if (!heading) return;
        heading.tabIndex = -1;
        heading.focus({ preventScroll: true });
        heading.scrollIntoView();
      }), { once: true });
      panel.close();
    });
  }

  // Formulas are no tab stops, unless one is wider than its place and has to be scrolled.
  const reach = (box) => {
    const formula = box.querySelector("mjx-container");
    if (formula?.scrollWidth > formula?.clientWidth + 1) formula.tabIndex = 0;
    else formula?.removeAttribute("tabindex");
  };
  const sizes = new ResizeObserver((entries) => entries.forEach((entry) => reach(entry.target)));
  document.querySelectorAll("main div.math").forEach((box) => sizes.observe(box));
});
