import { missingFeature } from "./missing-features.ts";
import type { StorageHandler, StorageRoutes } from "./storage-request.ts";

/** What Supabase's clients can ask for and the service does not have. */
export const missingFeatureRoutes: StorageRoutes = {
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
