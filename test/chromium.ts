import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

/** Where Debian, Ubuntu and others put it; or wherever CHROMIUM says. */
const PLACES = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export const program = PLACES.find((place) => place !== undefined && existsSync(place));

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: program!, args: ["--no-sandbox"] });
}
