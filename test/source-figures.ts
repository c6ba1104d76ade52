import { readFileSync } from "node:fs";
import { dirname } from "node:path/posix";
import { argv } from "node:process";
import { repositoryFiles } from "./repository.ts";
import { importsOf, readRooms, roomOf } from "./rooms.ts";

/** The shape of the TypeScript of the service or of Studio; tests, benchmarks and examples are left out. */
export type SourceFigures = {
  readonly files: number;
  readonly lines: number;
  readonly medianLines: number;
  readonly longest: readonly SizedFile[];
  /** Groups of files that import each other, types included. */
  readonly circles: readonly (readonly string[])[];
  /** Groups of folders that import each other, types included; a folder is its own files. */
  readonly folderCircles: readonly (readonly string[])[];
  /** Groups of rooms that import each other, types included. */
  readonly roomCircles: readonly (readonly string[])[];
  /** Files under 40 lines that one other file imports. */
  readonly crumbs: readonly string[];
  /** Types of one name that are defined in several files. */
  readonly repeatedTypes: ReadonlyMap<string, readonly string[]>;
  /** Names of types that say nothing about the thing. */
  readonly oddTypes: readonly string[];
  readonly deepestImports: number;
};

type SizedFile = { readonly file: string; readonly lines: number };
type Imports = ReadonlyMap<string, readonly string[]>;

const ODD_TYPE =
  /^(Told|Asked|Asker|Turn|Surroundings|Occasion|Circumstances|Means|Manner|Footing|Wish|Introduced|Performing|Live|Arrival|Farewell|Departures|Met|Known|Opened|Understood|Undertake|Undertaking|Inquiry|Verdict|Judge|Judgement|Seat|Way|Link|Lane|Line|Room)$/;

/** The service and the pages that run in browsers are counted apart. */
export function measureSource(part: "service" | "studio" = "service"): SourceFigures {
  const files = repositoryFiles().filter(
    (file) =>
      file.endsWith(".ts") &&
      !/^(test|bench|examples)\/|\.config\.ts$/.test(file) &&
      file.startsWith("studio/") === (part === "studio"),
  );
  const texts = new Map(files.map((file) => [file, readFileSync(file, "utf8")]));
  const imports: Imports = new Map(
    [...texts].map(([file, text]) => [file, [...new Set(importsOf(file, text))].filter((path) => texts.has(path))]),
  );
  const sizes = files
    .map((file): SizedFile => ({ file, lines: texts.get(file)!.split("\n").length - 1 }))
    .sort((one, other) => one.lines - other.lines);
  const importers = countImporters(imports);
  const types = findTypes(texts);
  return {
    files: files.length,
    lines: sizes.reduce((sum, { lines }) => sum + lines, 0),
    medianLines: sizes[sizes.length >> 1]!.lines,
    longest: sizes.slice(-5).reverse(),
    circles: findCircles(imports),
    folderCircles: findCircles(importsOfGroups(imports, dirname)),
    roomCircles: findCircles(importsOfGroups(imports, roomNames())),
    crumbs: sizes.filter(({ file, lines }) => lines < 40 && importers.get(file) === 1).map(({ file }) => file),
    repeatedTypes: new Map([...types].filter(([, definitions]) => definitions.length > 1)),
    oddTypes: [...types.keys()].filter((name) => ODD_TYPE.test(name)),
    deepestImports: deepestPath(imports),
  };
}

function roomNames(): (file: string) => string {
  const rooms = readRooms();
  return (file) => roomOf(file, rooms)?.folder ?? ".";
}

/** Returns the groups that each group of files imports: folders or rooms, by the name that a file has. */
export function importsOfGroups(imports: Imports, nameOf: (file: string) => string): Imports {
  const used = new Map<string, Set<string>>();
  for (const [file, paths] of imports) {
    const [from, others] = [nameOf(file), paths.map(nameOf)];
    const known = used.get(from) ?? new Set();
    used.set(from, known);
    for (const other of others) if (other !== from) known.add(other);
  }
  return new Map([...used].map(([group, others]) => [group, [...others]]));
}

function countImporters(imports: Imports): Map<string, number> {
  const counts = new Map<string, number>();
  for (const path of [...imports.values()].flat()) counts.set(path, (counts.get(path) ?? 0) + 1);
  return counts;
}

/** The strongly connected components of more than one file or folder (Tarjan). */
export function findCircles(imports: Imports): string[][] {
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const open: string[] = [];
  const circles: string[][] = [];

  const visit = (file: string): void => {
    order.set(file, order.size);
    lowest.set(file, order.get(file)!);
    open.push(file);
    for (const path of imports.get(file)!) {
      if (!order.has(path)) visit(path);
      if (open.includes(path)) lowest.set(file, Math.min(lowest.get(file)!, lowest.get(path)!));
    }
    if (lowest.get(file) !== order.get(file)) return;
    const component = open.splice(open.indexOf(file));
    if (component.length > 1) circles.push(component);
  };
  for (const file of imports.keys()) if (!order.has(file)) visit(file);
  return circles;
}

/** The files that define each name of a type. */
function findTypes(texts: ReadonlyMap<string, string>): Map<string, string[]> {
  const definitions = new Map<string, string[]>();
  for (const [file, text] of texts) {
    for (const [, name] of text.matchAll(/^(?:export )?(?:type|interface|class) (\w+)/gm)) {
      definitions.set(name!, [...(definitions.get(name!) ?? []), file]);
    }
  }
  return definitions;
}

function deepestPath(imports: Imports): number {
  const depths = new Map<string, number>();
  const depthOf = (file: string): number => {
    const known = depths.get(file);
    if (known !== undefined) return known;
    // Within a circle there is no depth: the first file counts.
    depths.set(file, 0);
    const depth = 1 + Math.max(0, ...imports.get(file)!.map(depthOf));
    depths.set(file, depth);
    return depth;
  };
  return Math.max(...[...imports.keys()].map(depthOf));
}

function print(title: string, figures: SourceFigures, withNames: boolean): void {
  const { files, lines, medianLines, longest, circles, roomCircles, crumbs, repeatedTypes, oddTypes } = figures;
  const manifold = [...repeatedTypes].filter(([, places]) => places.length > 3);
  const rows: [string, string | number, readonly string[]][] = [
    ["files", files, []],
    ["lines", lines, []],
    ["median lines", medianLines, []],
    ["longest file", longest[0]!.lines, longest.map(({ file, lines }) => `${file} (${lines})`)],
    ["circles of imports", circles.length, circles.map((circle) => circle.join(" "))],
    ["circles of rooms", roomCircles.length, roomCircles.map((circle) => circle.join(" "))],
    ["files under 40 lines with one importer", crumbs.length, crumbs],
    [
      "type names defined twice or more",
      repeatedTypes.size,
      [...repeatedTypes].map(([name, places]) => `${name}: ${places.join(" ")}`),
    ],
    [
      "type names with more than three",
      manifold.length,
      manifold.map(([name, places]) => `${name} (${places.length})`),
    ],
    ["type names that say nothing", oddTypes.length, oddTypes],
    ["longest path of imports", figures.deepestImports, []],
  ];
  console.log(title);
  for (const [name, figure, names] of rows) {
    console.log(`${name.padEnd(40)}${String(figure).padStart(8)}`);
    if (withNames) for (const each of names) console.log(`  ${each}`);
  }
}

if (import.meta.main) {
  print("service", measureSource(), argv.includes("--names"));
  print("\nstudio", measureSource("studio"), argv.includes("--names"));
}
