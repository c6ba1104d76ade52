import { mkdir, readdir, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { useFolder } from "../fixture.ts";
import { REPOSITORY } from "../repository.ts";
import { followTutorial, isAsPublished, readTutorial } from "./tutorial.ts";

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

/** A page is read in a few minutes. */
const MAX_WORDS = 900;

describe("the tutorial", () => {
  test("has ten short pages, each of which names the next", async () => {
    const pages = await readTutorial();
    expect(pages).toHaveLength(10);
    expect(pages.filter(({ text }) => text.split(/\s+/).length > MAX_WORDS).map(({ name }) => name)).toEqual([]);
    for (const [index, { text }] of pages.entries()) {
      expect(text).toMatch(new RegExp(`^# ${index + 1}\\. `));
      if (index < 9)
        expect(text.trimEnd()).toMatch(new RegExp(`Next: \\[.+\\]\\(${pages[index + 1]!.name}\\.md\\)\\.$`));
    }
  });

  test("runs as written in one new project, with the outputs that it shows", async () => {
    const pages = await readTutorial();
    const project = join(folder, "tutorial");
    await mkdir(project);
    const install = (commands: string) =>
      commands.replace(INSTALL, `ln -s ${join(folder, PACKAGES, "node_modules")} node_modules`);
    const text = pages.map((page) => page.text).join("\n");
    const steps = await followTutorial(text, { folder: project, environment, install });
    expect(steps.filter(({ expected }) => expected !== null).length).toBeGreaterThan(50);
    expect(steps.filter((step) => !isAsPublished(step))).toEqual([]);
  });
});
