import type { Caller } from "#accounts/identity";
import { type GatewayHandler, jsonResponse, type MatchedRequest, makeRouteFinder, type PatternRoutes } from "#http";
import { bucketRoutes } from "./bucket-routes.ts";
import { downloadRoutes } from "./download.ts";
import { imageRoutes } from "./image-routes.ts";
import { listRoutes } from "./list-routes.ts";
import { missingFeature } from "./missing-features.ts";
import { objectRoutes } from "./object-routes.ts";
import { explainRefusedCredential } from "./refused-credential.ts";
import { OPEN_RESUMABLE_ROUTES, resumableRoutes } from "./resumable-routes.ts";
import { signRoutes } from "./sign-routes.ts";
import { operationOf } from "./storage-operations.ts";
import {
  openRequest,
  STORAGE_PREFIX,
  type StorageHandler,
  type StorageRoutes,
  type StorageServices,
} from "./storage-request.ts";
import { uploadRoutes } from "./upload.ts";

/** Routes for features of Supabase's clients that the service does not have. */
const missingFeatureRoutes: StorageRoutes = {
  ...refuse("Lifecycles of buckets", ["GET", "PUT", "DELETE"], "/bucket/{bucket}/lifecycle"),
  ...refuse("Vector buckets", ["POST"], "/vector/{operation}"),
  ...refuse("Analytics buckets", ["GET", "POST", "DELETE"], "/iceberg/{path*}"),
};

function refuse(feature: string, methods: readonly string[], path: string): StorageRoutes {
  const handle: StorageHandler = async () => {
    throw missingFeature(feature);
  };
  return Object.fromEntries(methods.map((method) => [`${method} ${path}`, handle]));
}

/** Handles `/storage/v1`, in the protocol of Supabase's clients. */
export function storageHandler(services: StorageServices): GatewayHandler {
  const findRoute = makeRouteFinder(storageRoutes(services));
  return (request) => {
    const path = request.path.slice(STORAGE_PREFIX.length);
    const { handle, parameters } = findRoute(request.method, path);
    return handle({ ...request, parameters, query: new URLSearchParams(request.rawQuery) });
  };
}

function storageRoutes(services: StorageServices): PatternRoutes {
  const routes: StorageRoutes = {
    ...bucketRoutes,
    ...objectRoutes,
    ...listRoutes,
    ...signRoutes(services),
    ...downloadRoutes(services),
    ...imageRoutes(services),
    ...uploadRoutes(services),
    ...resumableRoutes(services),
    ...missingFeatureRoutes,
    "GET /version": async () => jsonResponse(200, { version: "content-service" }),
    "GET /status": async () => ({ status: 200, headers: {}, body: null }),
    "DELETE /cdn/{bucket}": purgeCache,
    "DELETE /cdn/{bucket}/{path*}": purgeCache,
  };
  const entries = Object.entries(routes).map(([name, handle]) => [name, withCaller(name, handle, services)] as const);
  // Routes such as `/object/public/{bucket}/{path*}` come before `/object/{bucket}/{path*}`.
  return Object.fromEntries(entries.toSorted(([one], [other]) => literalSegments(other) - literalSegments(one)));
}

/** Purges nothing: contents are cached by their hashes, so none is out of date. */
const purgeCache: StorageHandler = async () => jsonResponse(200, { message: "success" });

function literalSegments(name: string): number {
  return name.split("/").filter((segment) => !segment.startsWith("{")).length;
}

/** Routes whose credentials are not read, because the address itself gives the right, or names its signer. */
const OPEN_ROUTES: ReadonlySet<string> = new Set([
  ...OPEN_RESUMABLE_ROUTES,
  "GET /object/public/{bucket}/{path*}",
  "GET /object/info/public/{bucket}/{path*}",
  "GET /object/sign/{bucket}/{path*}",
  "GET /render/image/public/{bucket}/{path*}",
  "GET /render/image/sign/{bucket}/{path*}",
  "PUT /object/upload/sign/{bucket}/{path*}",
  "GET /status",
  "GET /version",
]);

function withCaller(name: string, handle: StorageHandler, services: StorageServices): PatternRoutes[string] {
  const isOpen = OPEN_ROUTES.has(name);
  return async (request) => {
    const caller = isOpen ? services.authenticator.anonymous : await authenticate(request, services);
    request.admit(caller);
    return handle(openRequest(request, caller, operationOf(request.method, name), services));
  };
}

async function authenticate(request: MatchedRequest, services: StorageServices): Promise<Caller> {
  try {
    return await services.authenticate(request);
  } catch (error) {
    throw explainRefusedCredential(error);
  }
}
