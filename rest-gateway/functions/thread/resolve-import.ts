import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type DenoImport,
  explainInstall,
  findDenoImport,
  findSimilarPackage,
  findStandardPackage,
} from "./deno-imports.ts";
import type { ImportMap } from "./messages.ts";

/** A specifier that Node can resolve, a module of the service, an empty module, or the reason for a refusal. */
export type ImportTarget =
  | {
      readonly kind: "module";
      readonly specifier: string;
      readonly parent: string | null;
      /** The command that installs the package. */
      readonly install: string | null;
    }
  | Exclude<DenoImport, { readonly kind: "npm" | "builtin" }>
  | { readonly kind: "refused"; readonly reason: string };

/** An npm specifier: `npm:@scope/name@1.2.3/path`. */
const NPM = /^npm:\/?((?:@[^/@]+\/)?[^/@]+)(?:@([^/]+))?(\/.*)?$/;
/** Modules of types, which have no content at run time. Each function of Supabase's template imports some from jsr. */
const TYPES = /\.d\.[mc]?ts(\?.*)?$|\/functions-js(@[^/]+)?\/edge-runtime(\.d\.ts)?$/;

/** Applies the import map, and then resolves Deno's kinds of specifiers. */
export function resolveImport(specifier: string, map: ImportMap | null): ImportTarget {
  const mapped = map ? applyImportMap(specifier, map) : null;
  const target = mapped ?? specifier;
  if (TYPES.test(target)) return { kind: "empty" };
  const npm = NPM.exec(target);
  if (npm) return toModule(`${npm[1]}${npm[3] ?? ""}`, explainInstall(npm[1]!, npm[2] ?? null));
  if (/^(https?|jsr):/.test(target)) {
    const found = findDenoImport(target);
    if (!found) return { kind: "refused", reason: explainRefusal(target, map) };
    if (found.kind === "builtin") return toModule(found.specifier, null);
    return found.kind === "npm" ? toModule(`${found.name}${found.path}`, found.install) : found;
  }
  if (/^(data|blob):/.test(target)) return { kind: "refused", reason: "imports by data: and blob: are not supported" };
  return { kind: "module", specifier: target, parent: mapped === null ? null : map!.base, install: null };
}

function toModule(specifier: string, install: string | null): ImportTarget {
  return { kind: "module", specifier, parent: null, install };
}

function explainRefusal(target: string, map: ImportMap | null): string {
  const standard = findStandardPackage(target);
  const file = map ? basename(fileURLToPath(map.base)) : "deno.json";
  const similar = findSimilarPackage(target);
  const line = `"${target}": "${standard ? `jsr:${standard}` : `npm:${similar ?? "<package>"}`}"`;
  const install = standard
    ? `npx jsr add ${standard.split("/", 2).join("/")}`
    : `npm install ${similar ?? "<package>"}${similar ? ", which has other exports" : ""}`;
  return `nothing is loaded from other servers; run ${install}, and add to "imports" of ${file}: ${line}`;
}

function applyImportMap(specifier: string, { imports }: ImportMap): string | null {
  const exact = imports[specifier];
  if (exact !== undefined) return exact;
  const prefixes = Object.keys(imports).filter((key) => specifier.startsWith(key.endsWith("/") ? key : `${key}/`));
  const [longest] = prefixes.sort((one, other) => other.length - one.length);
  if (longest === undefined) return null;
  const target = imports[longest]!;
  if (longest.endsWith("/")) return target + specifier.slice(longest.length);
  // A package without its own entry for paths is extended by the path, as in Deno.
  return /^(npm|jsr):/.test(target) ? target + specifier.slice(longest.length) : null;
}
