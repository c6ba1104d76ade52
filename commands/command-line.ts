import { basename } from "node:path";

type Manner = {
  /** Without what npm says of its own, for output that a program reads. */
  readonly silent?: boolean;
};

/** A line that calls one of our commands in the way in which this one was called: an npm script, or the package's one command. */
export function commandLine(name: string, words = "", { silent = false }: Manner = {}): string {
  const program = nameOfProgram();
  if (program !== null) return joined(program, name, words);
  if (name === "start") return joined("npm start", words);
  // What the shell reads itself needs no dashes before it.
  const dashes = words === "" || /^[<>|]/.test(words) ? "" : "--";
  return joined(silent ? "npm run --silent" : "npm run", name, dashes, words);
}

/** `content-service`, by npx where npx called it; null in a script of a clone. */
function nameOfProgram(): string | null {
  const program = basename(process.argv[1] ?? "", ".js");
  if (program !== "content-service") return null;
  return process.env.npm_command === "exec" ? `npx ${program}` : program;
}

function joined(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join(" ");
}
