import { mkdir, readdir, readFile, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { useFolder } from "../fixture.ts";
import { REPOSITORY } from "../repository.ts";
import { followTutorial, outputPattern } from "./tutorial.ts";

/** A folder with the packages of a project, for use without the network: those of the repository, and the repository as the service. */
const PACKAGES = "installed";
const INSTALL = /^npm (?:install \.\.\/content-service-\*\.tgz .*|ci --omit=dev)$/m;

const folder = useFolder("content-service-tutorial-");
beforeAll(async () => {
  const modules = join(folder, PACKAGES, "node_modules");
  await mkdir(join(modules, ".bin"), { recursive: true });
  for (const name of await readdir(join(REPOSITORY, "node_modules"))) {
    if (!name.startsWith(".")) await symlink(join(REPOSITORY, "node_modules", name), join(modules, name));
  }
  await symlink(REPOSITORY, join(modules, "content-service"));
  await symlink(join(REPOSITORY, "bin/content-service.js"), join(modules, ".bin/content-service"));
  await symlink(process.execPath, join(modules, ".bin/node"));
});

const environment = {
  PATH: `${join(REPOSITORY, "node_modules/.bin")}:${process.env.PATH}`,
  HOME: tmpdir(),
  npm_config_loglevel: "error",
  npm_config_update_notifier: "false",
  ...Object.fromEntries(
    ["AUTHOR", "COMMITTER"].flatMap((who) => [
      [`GIT_${who}_NAME`, "Ada"],
      [`GIT_${who}_EMAIL`, "ada@example.org"],
    ]),
  ),
};

describe.each(["todo", "todo-graphql"])("the tutorial %s", (name) => {
  test("runs as written, with the outputs that it shows", async () => {
    const project = join(folder, name);
    await mkdir(project);
    const install = (commands: string) =>
      commands.replace(INSTALL, `ln -s ${join(folder, PACKAGES, "node_modules")} node_modules`);
    const page = await readFile(join(REPOSITORY, `docs/tutorials/${name}.md`), "utf8");
    const steps = await followTutorial(page, { folder: project, environment, install });
    const shown = steps.filter(({ expected }) => expected !== null);
    expect(shown.length).toBeGreaterThan(2);
    for (const { commands, output, expected } of shown)
      expect(output.trim()).toMatch(outputPattern(expected!, commands));
  });
});
