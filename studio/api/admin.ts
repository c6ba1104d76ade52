import { requestJson, type ServiceRequest } from "./client.ts";

const ADMIN_PATH = "/admin/v1";

/** Calls `/admin/v1`: adminCall<Catalog>("GET /catalog", { signal }). */
export function adminCall<Result>(
  route: `${"GET" | "POST" | "DELETE"} /${string}`,
  options: Omit<ServiceRequest, "method" | "as"> = {},
): Promise<Result> {
  const [method, path] = route.split(" ") as [string, string];
  return requestJson<Result>(ADMIN_PATH + path, { ...options, method, as: "administrator" });
}
