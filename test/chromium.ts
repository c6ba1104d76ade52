import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

/** The paths of CHROMIUM, of Debian, Ubuntu and others. The one without windows is first: it takes a third less processor time. */
const PLACES = [
  process.env.CHROMIUM,
  "/usr/bin/chromium-headless-shell",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];

export const program = PLACES.find((place) => place !== undefined && existsSync(place));

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: program!, args: ["--no-sandbox"] });
}
