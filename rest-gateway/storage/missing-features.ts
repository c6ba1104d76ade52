import { isJsonObject } from "#runtime/json";
import { storageError } from "./storage-error.ts";

/** Makes the error for a feature of Supabase's clients, named in the plural, that does not exist here. */
export function missingFeature(feature: string) {
  return storageError("FeatureNotEnabled", `${feature} are not supported.`);
}

/** Refuses a request for another version, since an object has only one. */
export function refuseVersions(sent: Readonly<Record<string, unknown>>): void {
  const { versionId, sourceVersionId, prefixes, versioning_status: status, noncurrentVersions, deleteMarkers } = sent;
  const asksForVersions =
    (versionId ?? sourceVersionId ?? null) !== null ||
    (status ?? "DISABLED") !== "DISABLED" ||
    [noncurrentVersions, deleteMarkers].some((shown) => (shown ?? "exclude") !== "exclude") ||
    (Array.isArray(prefixes) && prefixes.some(isJsonObject));
  if (asksForVersions) throw missingFeature("Versions of objects");
}
