import { expect, test } from "vitest";
import { newerMinors, parseVersion, readEmbeddedPackages } from "./embedded-versions.ts";

test("the embedded Postgres is the same minor release on every platform", async () => {
  const packages = await readEmbeddedPackages();
  expect(packages).toHaveLength(4);
  const [version, ...others] = packages.map((each) => parseVersion(each.version));
  for (const other of others) expect(other).toEqual(version);
});

test("a newer minor release of the same major is found, whatever the registry has besides", () => {
  const published = ["17.9.0", "18.3.0-beta.17", "18.4.0-beta.17", "18.4.1", "18.10.0-beta.1", "19.0.0", "latest"];
  expect(newerMinors("18.4.0-beta.17", published)).toEqual(["18.10.0-beta.1"]);
  expect(newerMinors("19.0.0", published)).toEqual([]);
});
