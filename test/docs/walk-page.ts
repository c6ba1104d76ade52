import { cpus, loadavg } from "node:os";

/** The machine of a recorded page. */
export function describeMachine(): string {
  const [{ model } = { model: "an unknown processor" }] = cpus();
  return `Machine: ${cpus().length} cores (${model}), load ${loadavg()[0]!.toFixed(1)} at the start, Node ${process.versions.node}.`;
}

/** A step with its duration, its commands and their output. */
export function walkSection(
  title: string,
  seconds: number,
  language: string,
  commands: string,
  output: string,
): string {
  const shown = output === "" ? "" : `\n\`\`\`text\n${output}\n\`\`\`\n`;
  return `## ${title}: ${seconds.toFixed(1)} s\n\n\`\`\`${language}\n${commands}\`\`\`\n${shown}`;
}

/** npm repeats the command that it runs. */
const ECHO = /^> \S+@\S+ \w+\n(?:.+\n)+\n+/gm;

/** The output as it is published: without npm's echo, the folder of this machine, and tokens. */
export function publishedOutput(output: string, folder: string, shownFolder: string): string {
  return output
    .replaceAll(ECHO, "")
    .replaceAll(folder, shownFolder)
    .replaceAll(/eyJ[\w-]+\.[\w-]+\.[\w-]+/g, "eyJ…")
    .replaceAll(/^\{"level".*\n/gm, "")
    .trim();
}

export function secondsSince(moment: number): number {
  return (performance.now() - moment) / 1000;
}
