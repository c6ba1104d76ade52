import { expect, test } from "vitest";
import { withProgress } from "../../../../service/cli/command/progress.ts";
import { until } from "../../../until.ts";

class RecordedTerminal {
  readonly isTTY: boolean;
  readonly written: string[] = [];

  constructor(isTTY: boolean) {
    this.isTTY = isTTY;
  }

  write(text: string): boolean {
    this.written.push(text);
    return true;
  }
}

test("work of more than a second moves a line at a terminal, which is cleared in the end", async () => {
  const terminal = new RecordedTerminal(true);
  const result = await withProgress(
    "checking",
    async () => {
      await until(() => terminal.written.length > 1);
      return 42;
    },
    terminal,
  );
  expect(result).toBe(42);
  expect(terminal.written[0]).toContain("checking … 1 s");
  expect(terminal.written.at(-1)).toBe("\r\u001b[2K");
});

test("work that fails clears the line, too", async () => {
  const terminal = new RecordedTerminal(true);
  const failing = withProgress(
    "checking",
    async () => {
      await until(() => terminal.written.length > 0);
      throw new Error("no");
    },
    terminal,
  );
  await expect(failing).rejects.toThrow("no");
  expect(terminal.written.at(-1)).toBe("\r\u001b[2K");
});

test("short work, and work without a terminal, shows nothing", async () => {
  const [terminal, pipe] = [new RecordedTerminal(true), new RecordedTerminal(false)];
  await withProgress("checking", async () => {}, terminal);
  await withProgress("checking", () => new Promise((resolve) => setTimeout(resolve, 1_300)), pipe);
  expect([terminal.written, pipe.written]).toEqual([[], []]);
});
