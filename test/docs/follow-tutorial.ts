import { argv } from "node:process";
import { followTutorial, isAsPublished, readTutorial } from "./tutorial.ts";

// Follows the tutorial with npm and a tarball, as a reader does: `node test/docs/follow-tutorial.ts FOLDER`, where FOLDER contains the tarball.

const [, , folder] = argv;
const startedAt = performance.now();
const pages = (await readTutorial()).map(({ text }) => text).join("\n");
const steps = await followTutorial(pages, { folder: folder!, environment: process.env });
for (const step of steps) {
  const verdict = step.expected === null ? "" : isAsPublished(step) ? "as published\n" : "NOT as published\n";
  process.stdout.write(`$ ${step.commands}${step.output}\n${verdict}\n`);
}
process.stdout.write(`${((performance.now() - startedAt) / 1000).toFixed(0)} s\n`);
