import { describe } from "vitest";
import { program } from "./chromium.ts";

export { launchBrowser } from "./chromium.ts";

/** Tests that want a real browser; without one they are skipped, and say so. */
export function describeInBrowser(title: string, tests: () => void): void {
  const result = program ? title : `${title} (skipped: no Chromium, try apt-get install chromium)`;
  describe.skipIf(!program)(result, tests);
}
