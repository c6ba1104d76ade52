import { ApiError } from "../../../engine/errors.ts";
import { remember } from "../../../engine/remember.ts";
import { decodePercent } from "./query-string.ts";

export type Resource =
  | { readonly kind: "table" | "function"; readonly name: string }
  /** The interface itself, described in OpenAPI. */
  | { readonly kind: "root" };

type Root = { readonly rootFunction: string | null; readonly describesItself: boolean };

const METHODS: Readonly<Record<Resource["kind"], readonly string[]>> = {
  root: ["OPTIONS", "GET", "HEAD"],
  table: ["OPTIONS", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
  function: ["OPTIONS", "GET", "HEAD", "POST"],
};

const segmentsOf = remember(500, (path: string) => path.replace(/^\//, "").split("/").map(decodePercent));

/** `/films`, `/rpc/add`, `/` */
export function parseResource(path: string, { rootFunction, describesItself }: Root): Resource {
  const [first = "", second, ...more] = segmentsOf(path);
  if (first === "" && second === undefined) {
    if (!describesItself) throw new ApiError(404, "PGRST126", "Root endpoint metadata is disabled");
    return rootFunction === null ? { kind: "root" } : { kind: "function", name: rootFunction };
  }
  if (second === undefined) return { kind: "table", name: first };
  if (first === "rpc" && more.length === 0) return { kind: "function", name: second };
  throw new ApiError(404, "PGRST125", "Invalid path specified in request URL");
}

export function checkMethod(resource: Resource, method: string): void {
  const methods = METHODS[resource.kind];
  if (methods.includes(method)) return;
  const headers = { Allow: methods.join(",") };
  if (resource.kind === "function")
    throw new ApiError(405, "PGRST101", `Cannot use the ${method} method on RPC`, { headers });
  throw new ApiError(405, "PGRST117", `Unsupported HTTP method: ${method}`, { headers });
}
