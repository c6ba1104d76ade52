/** The name of the package and of its program. It is not published, so a package of this name in a registry must not be run by mistake. */
export const PACKAGE_NAME = "content-service";

/** The program of an installed package, such as `npx content-service`; null in a clone, whose commands are npm scripts. */
let program: string | null = null;

/** Called at the start of a process that is not an npm script of a clone. */
export function setPackageProgram(name: string | null): void {
  program = name;
}

/** Returns the program for other processes of the service, which do not know how it was started. */
export function packageProgram(): string | null {
  return program;
}

type CommandLineOptions = {
  /** Suppresses npm's own output, for output that a program reads. */
  readonly silent?: boolean;
};

/** Returns the command line for a command, as an npm script or by the program of the package, whichever started this process. */
export function commandLine(name: string, args = "", { silent = false }: CommandLineOptions = {}): string {
  if (program !== null) return joinParts(program, name, args);
  // Redirections and pipes are for the shell, so no dashes are needed.
  const dashes = args === "" || /^[<>|]/.test(args) ? "" : "--";
  if (name === "start") return joinParts("npm start", dashes, args);
  return joinParts(silent ? "npm run --silent" : "npm run", name, dashes, args);
}

function joinParts(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join(" ");
}
