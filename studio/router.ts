import { useCallback } from "preact/hooks";
import { makeStore, useStore } from "./store.ts";

export const ROOT = "/studio";

/** The part of the address that holds the state of Studio. */
export type Location = { readonly path: string; readonly query: string };

export const location = makeStore<Location>(readLocation());

type NavigateOptions = { readonly replace?: boolean };

/** Shows an address of Studio: navigate("/studio/tables/public/films?order=title"). */
export function navigate(address: string, { replace = false }: NavigateOptions = {}): void {
  const { pathname, search, hash } = new URL(address, document.baseURI);
  history[replace ? "replaceState" : "pushState"](null, "", pathname + search + hash);
  updateLocation();
}

/** The decoded segments of the path below `/studio`: ["tables", "public", "films"]. */
export function useSegments(): readonly string[] {
  const { path } = useStore(location);
  return path.slice(ROOT.length).split("/").filter(Boolean).map(decodeSegment);
}

/** Keeps a segment that is not valid encoding: no object has such a name. */
function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Returns a parameter of the query string, and the function that changes it; null removes it. */
export function useSearchParameter(
  name: string,
): [string | null, (value: string | null, options?: NavigateOptions) => void] {
  const { query } = useStore(location);
  const value = new URLSearchParams(query).get(name);
  const change = useCallback(
    (next: string | null, options?: NavigateOptions) => setSearchParameter(name, next, options),
    [name],
  );
  return [value, change];
}

export function setSearchParameter(name: string, value: string | null, options?: NavigateOptions): void {
  const { path, query } = location.get();
  const parameters = new URLSearchParams(query);
  if (value === null) parameters.delete(name);
  else parameters.set(name, value);
  const text = parameters.toString();
  navigate(text === "" ? path : `${path}?${text}`, options);
}

/** Builds a path of `/studio` and segments, each encoded: pathTo("tables", "public", "films"). */
export function pathTo(...segments: readonly string[]): string {
  return [ROOT, ...segments.map(encodeURIComponent)].join("/");
}

/** Follows links within Studio without loading the page again. */
export function startRouter(): void {
  window.addEventListener("popstate", updateLocation);
  document.addEventListener("click", (event) => {
    const address = addressOfLink(event);
    if (address === null) return;
    event.preventDefault();
    navigate(address);
  });
}

function addressOfLink(event: MouseEvent): string | null {
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!isPlain || event.defaultPrevented || !link || link.target !== "" || link.hasAttribute("download")) return null;
  const { origin, pathname, search, hash } = new URL(link.href, document.baseURI);
  const isWithin = origin === window.location.origin && (pathname === ROOT || pathname.startsWith(`${ROOT}/`));
  const isAnchor = hash !== "" && pathname === window.location.pathname && search === window.location.search;
  return isWithin && !isAnchor ? pathname + search + hash : null;
}

function updateLocation(): void {
  location.set(readLocation());
}

function readLocation(): Location {
  return { path: window.location.pathname, query: window.location.search.slice(1) };
}
