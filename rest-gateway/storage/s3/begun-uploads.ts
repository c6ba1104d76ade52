import { type Caller, quotaKey } from "#accounts/identity";
import type { ObjectAddress } from "../object-rows.ts";
import { ownerOf, type StorageRequest } from "../storage-request.ts";

/** An upload in parts. */
type BegunUpload = {
  readonly id: string;
  readonly address: ObjectAddress;
  readonly about: unknown;
  /** Of the object. */
  readonly maxBytes: number;
};

const BEGIN = "select null from content_service.begin_upload($1, $2, $3, $4, $5, $6, $7, $8)";
const END = "select null from content_service.end_upload($1)";

/** Who may go on with an upload in parts. */
export function callerOf(caller: Caller): string {
  return `${caller.role} ${ownerOf(caller) ?? ""}`;
}

/** Throws if the caller has too many that are not finished, or too large ones. */
export async function beginUpload(
  { rows, caller, connection }: Pick<StorageRequest, "rows" | "caller" | "connection">,
  { id, address, about, maxBytes }: BegunUpload,
): Promise<void> {
  await rows.asService(BEGIN, [
    ...[id, callerOf(caller), quotaKey(caller, () => connection().address), caller.role],
    ...[address.bucket, address.name, JSON.stringify(about), String(maxBytes)],
  ]);
}

/** It does not count any more. */
export async function endUpload({ rows }: Pick<StorageRequest, "rows">, id: string): Promise<void> {
  await rows.asService(END, [id]);
}
