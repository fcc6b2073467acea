// Names for screen readers where the theme gives none, or another than the one that can be seen.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".search-button-field").forEach((element) => element.removeAttribute("aria-label"));
  document.querySelectorAll(".bd-sidebar-primary summary").forEach((summary) => {
    const link = summary.closest("li").querySelector("a");
    summary.setAttribute("aria-label", "pages below " + link.textContent.trim());
  });
  document.querySelectorAll(".theme-switch-button").forEach((button) => {
    button.setAttribute("aria-label", "Color mode: Light, Dark or System Settings"); // the titles of its icons
  });
});
