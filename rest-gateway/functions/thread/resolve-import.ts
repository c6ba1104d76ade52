import type { ImportMap } from "./messages.ts";

/** A specifier that Node can resolve, an empty module, or the reason for a refusal. */
type ImportTarget =
  | { readonly kind: "module"; readonly specifier: string; readonly parent: string | null }
  | { readonly kind: "empty" }
  | { readonly kind: "refused"; readonly reason: string };

/** An npm specifier: `npm:@scope/name@1.2.3/path`. */
const NPM = /^npm:\/?((?:@[^/@]+\/)?[^/@]+)(?:@[^/]+)?(\/.*)?$/;
/** Modules of types, which have no content at run time. Each function of Supabase's template imports some from jsr. */
const TYPES = /\.d\.[mc]?ts(\?.*)?$|\/functions-js(@[^/]+)?\/edge-runtime(\.d\.ts)?$/;

/** Applies the import map, and then resolves Deno's kinds of specifiers. */
export function resolveImport(specifier: string, map: ImportMap | null): ImportTarget {
  const mapped = map ? applyImportMap(specifier, map) : null;
  const target = mapped ?? specifier;
  if (TYPES.test(target)) return { kind: "empty" };
  if (/^(https?|jsr|data|blob):/.test(target)) return { kind: "refused", reason: explainRefusal(target) };
  const npm = NPM.exec(target);
  if (npm) return { kind: "module", specifier: `${npm[1]}${npm[2] ?? ""}`, parent: null };
  return { kind: "module", specifier: target, parent: mapped === null ? null : map!.base };
}

function explainRefusal(target: string): string {
  if (target.includes("/std") && target.endsWith("/http/server.ts"))
    return "nothing is loaded from other servers; call Deno.serve instead of serve, without an import";
  const [scheme] = target.split(":", 1);
  const source = scheme === "jsr" ? "jsr is not supported" : `imports by ${scheme}: are not supported`;
  return `${source}; install the package with npm, and import "npm:<package>" or map the import in deno.json`;
}

function applyImportMap(specifier: string, { imports }: ImportMap): string | null {
  const exact = imports[specifier];
  if (exact !== undefined) return exact;
  const prefixes = Object.keys(imports).filter((key) => specifier.startsWith(key.endsWith("/") ? key : `${key}/`));
  const [longest] = prefixes.sort((one, other) => other.length - one.length);
  if (longest === undefined) return null;
  const target = imports[longest]!;
  if (longest.endsWith("/")) return target + specifier.slice(longest.length);
  // As in Deno, a package without its own entry for paths is extended by the path.
  return /^(npm|jsr):/.test(target) ? target + specifier.slice(longest.length) : null;
}
