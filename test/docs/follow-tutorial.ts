import { readFile } from "node:fs/promises";
import { argv } from "node:process";
import { followTutorial, outputPattern } from "./tutorial.ts";

// Follows a tutorial with npm and a tarball, as a reader does: `node test/docs/follow-tutorial.ts PAGE FOLDER`, where FOLDER contains the tarball.

const [, , page, folder] = argv;
const startedAt = performance.now();
const steps = await followTutorial(await readFile(page!, "utf8"), {
  folder: folder!,
  environment: process.env,
  install: (commands) => commands,
});
for (const { commands, output, expected } of steps) {
  const verdict =
    expected === null
      ? ""
      : outputPattern(expected, commands).test(output.trim())
        ? "as published\n"
        : "NOT as published\n";
  process.stdout.write(`$ ${commands}${output}\n${verdict}\n`);
}
process.stdout.write(`${((performance.now() - startedAt) / 1000).toFixed(0)} s\n`);
