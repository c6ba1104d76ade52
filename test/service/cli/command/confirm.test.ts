import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { confirmAtTerminal } from "../../../../service/cli/command/confirm.ts";

function terminal(isTTY: boolean, answer: string) {
  const input = Object.assign(new PassThrough(), { isTTY }) as unknown as NodeJS.ReadStream;
  const output = Object.assign(new PassThrough(), { isTTY }) as unknown as NodeJS.WriteStream;
  if (isTTY) (input as unknown as PassThrough).write(`${answer}\n`);
  return { input, output };
}

test.each([
  ["y", true],
  ["Yes", true],
  ["", false],
  ["n", false],
  ["you", false],
])("the answer %o at a terminal", async (answer, confirmed) => {
  const asked = terminal(true, answer);
  expect(await confirmAtTerminal("Drop the rows?", asked)).toBe(confirmed);
  expect(String((asked.output as unknown as PassThrough).read())).toContain("Drop the rows? [y/N] ");
});

test("without a terminal nobody is asked, and nothing is confirmed", async () => {
  const asked = terminal(false, "y");
  expect(await confirmAtTerminal("Drop the rows?", asked)).toBe(false);
  expect((asked.output as unknown as PassThrough).read()).toBeNull();
});
