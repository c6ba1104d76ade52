import { createInterface } from "node:readline/promises";

type Terminal = { readonly input: NodeJS.ReadStream; readonly output: NodeJS.WriteStream };

/** Asks at a terminal, where only "y" or "yes" confirms. Without a terminal nobody can be asked, and nothing is confirmed. */
export async function confirmAtTerminal(
  question: string,
  { input, output }: Terminal = { input: process.stdin, output: process.stderr },
): Promise<boolean> {
  if (!input.isTTY || !output.isTTY) return false;
  const lines = createInterface({ input, output });
  try {
    return /^y(es)?$/i.test((await lines.question(`${question} [y/N] `)).trim());
  } finally {
    lines.close();
  }
}
