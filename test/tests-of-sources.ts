// The tests of a source are at its path in test/, else they are those of its folder. Tests of several rooms have a folder of their own.
import { repositoryFiles } from "./repository.ts";

const folderOf = (path: string) => path.slice(0, Math.max(0, path.lastIndexOf("/")));

export type SourceTests = {
  readonly sources: readonly string[];
  readonly tests: readonly string[];
  /** Returns the tests of a source: `test/catalog/access.test.ts` for `catalog/access.ts`, else the tests of `catalog/`. */
  testsOf(source: string): readonly string[];
  /** True if a test is at the path of a source or of a folder with sources. */
  mirrors(test: string): boolean;
};

export function findSourceTests(): SourceTests {
  const files = repositoryFiles("**/*.ts");
  const tests = files.filter((file) => file.startsWith("test/") && file.endsWith(".test.ts"));
  const sources = files.filter((file) => file.includes("/") && !/^(test|examples)\//.test(file));
  const byFolder = Map.groupBy(tests, folderOf);
  const known = new Set(tests);
  const others = repositoryFiles("**").filter((file) => !file.startsWith("test/"));
  const paths = new Set(others.flatMap((file) => [file.replace(/\.(ts|sql)$/, ""), ...ancestorsOf(file)]));
  return {
    sources,
    tests,
    testsOf(source) {
      const own = `test/${source.replace(/\.ts$/, ".test.ts")}`;
      if (known.has(own)) return [own];
      const folder = `test/${folderOf(source)}`;
      const ofFolder = `${folder}.test.ts`;
      return [...(known.has(ofFolder) ? [ofFolder] : []), ...(byFolder.get(folder) ?? [])];
    },
    mirrors(test) {
      const path = test.slice("test/".length, -".test.ts".length);
      return paths.has(path) || (path.includes("/") && paths.has(folderOf(path)));
    },
  };
}

function ancestorsOf(file: string): string[] {
  const parts = file.split("/");
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join("/"));
}
