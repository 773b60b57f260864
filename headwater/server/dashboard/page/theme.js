// Runs before the first paint, so that a page in the chosen theme does not flash in the other one.
{
  const chosen = localStorage.getItem("headwater.theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
}
