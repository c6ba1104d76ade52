import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";
import { describe } from "vitest";

/** Where Debian, Ubuntu and others put it; or wherever CHROMIUM says. */
const PLACES = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const program = PLACES.find((place) => place !== undefined && existsSync(place));

/** Tests that want a real browser; without one they are skipped, and say so. */
export function describeInBrowser(title: string, tests: () => void): void {
  const told = program ? title : `${title} (skipped: no Chromium, try apt-get install chromium)`;
  describe.skipIf(!program)(told, tests);
}

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: program!, args: ["--no-sandbox"] });
}
