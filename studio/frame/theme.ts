import { makeStore } from "../store.ts";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEY = "studio.theme";

export const theme = makeStore<Theme>(readTheme());

/** Applies the colour scheme, also after changes in other tabs. */
export function startTheme(): void {
  applyTheme();
  theme.subscribe(applyTheme);
  window.addEventListener("storage", ({ key }) => key === KEY && theme.set(readTheme()));
}

export function chooseTheme(chosen: Theme): void {
  localStorage.setItem(KEY, chosen);
  theme.set(chosen);
}

function applyTheme(): void {
  const chosen = theme.get();
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

function readTheme(): Theme {
  const stored = localStorage.getItem(KEY);
  return THEMES.find((name) => name === stored) ?? "system";
}
