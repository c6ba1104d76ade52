import { isJsonObject } from "#runtime/json";
import { storageError } from "./storage-error.ts";

/** Something that Supabase's clients can ask for, in the plural. */
export function missingFeature(feature: string) {
  return storageError("FeatureNotEnabled", `${feature} are not supported.`);
}

/** An object has one version: a request for another is not answered with this one. */
export function refuseVersions(sent: Readonly<Record<string, unknown>>): void {
  const { versionId, sourceVersionId, prefixes, versioning_status: status, noncurrentVersions, deleteMarkers } = sent;
  const asksForVersions =
    (versionId ?? sourceVersionId ?? null) !== null ||
    (status ?? "DISABLED") !== "DISABLED" ||
    [noncurrentVersions, deleteMarkers].some((shown) => (shown ?? "exclude") !== "exclude") ||
    (Array.isArray(prefixes) && prefixes.some(isJsonObject));
  if (asksForVersions) throw missingFeature("Versions of objects");
}
