import { describe } from "vitest";
import { program } from "./chromium.ts";

export { launchBrowser } from "./chromium.ts";

/** The limit of a test is later, and would not name the step. Copies and restores take long on a machine that runs other tests. */
export const STEP_TIMEOUT_MS = 240_000;

/** Tests that want a real browser; without one they are skipped, and say so. */
export function describeInBrowser(title: string, tests: () => void): void {
  const result = program ? title : `${title} (skipped: no Chromium, try apt-get install chromium)`;
  describe.skipIf(!program)(result, tests);
}
