import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { REPOSITORY, repositoryFiles } from "./repository.ts";

/** A folder that others import only through its entry points, as its README says. */
export type Room = {
  readonly folder: string;
  readonly readme: string;
  readonly entryPoints: readonly string[];
  /** The rooms that it may use. */
  readonly uses: readonly string[];
};

const subpathImports: Readonly<Record<string, string>> = JSON.parse(
  readFileSync(join(REPOSITORY, "package.json"), "utf8"),
).imports;

/** Returns all rooms; those that lie in another one first. */
export function readRooms(): Room[] {
  return repositoryFiles("*/README.md")
    .map((file) => ({ folder: dirname(file), readme: readFileSync(join(REPOSITORY, file), "utf8") }))
    .filter(({ readme }) => /^Door: /m.test(readme))
    .map(({ folder, readme }) => ({
      folder,
      readme,
      entryPoints: namesAfter("Door", readme).map((name) => join(folder, name)),
      uses: namesAfter("Uses", readme),
    }))
    .sort((one, other) => other.folder.length - one.folder.length);
}

export function roomOf(file: string, rooms: readonly Room[]): Room | undefined {
  return rooms.find(({ folder }) => file.startsWith(`${folder}/`));
}

/** The file of this repository that an import names; null for packages. */
export function importedFile(importer: string, name: string): string | null {
  if (name.startsWith(".")) return join(dirname(importer), name);
  return subpathImports[name]?.slice("./".length) ?? null;
}

/** The files of this repository that a module imports, types and dynamic imports included. */
export function importsOf(file: string, text: string): string[] {
  const named = [...text.matchAll(/from "([.#][^"]+)"|import\("([.#][^"]+)"\)/g)];
  return named.flatMap(([, path, later]) => importedFile(file, (path ?? later)!) ?? []);
}

function namesAfter(word: string, readme: string): string[] {
  const [, names = ""] = new RegExp(`^${word}: (.*)$`, "m").exec(readme) ?? [];
  return [...names.matchAll(/`([^`]+)`/g)].map(([, name]) => name!);
}
