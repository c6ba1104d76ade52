import { quotaKey } from "#accounts/identity";
import { asLogin, type RunStatement } from "#postgres/database";
import type { ObjectAddress } from "./object-rows.ts";
import { ownerOf, type StorageRequest } from "./storage-request.ts";

/** An upload in parts, which counts for its caller and its bucket until it is finished. */
type BegunUpload = {
  readonly id: string;
  readonly address: ObjectAddress;
  /** The caller who may continue it by S3; "" for an upload by TUS. */
  readonly caller: string;
  readonly about: unknown;
  /** The size, as far as it is known. */
  readonly bytes: number;
  /** The limit of the object's size. */
  readonly maxBytes: number;
};

type UploadingRequest = Pick<StorageRequest, "rows" | "caller" | "connection">;

const BEGIN = "select null from content_service.begin_upload($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
const END = "select null from content_service.end_upload($1)";

/** Returns the key by which unfinished uploads are counted together. */
export function quotaOf({ caller, connection }: Pick<UploadingRequest, "caller" | "connection">): string {
  return quotaKey(caller, () => connection().address);
}

/** Begins an upload, or records its size as known by now. Throws if the caller or the bucket has too much in unfinished uploads. */
export async function beginUpload(
  request: UploadingRequest,
  { id, address, caller, about, bytes, maxBytes }: BegunUpload,
): Promise<void> {
  await request.rows.writeAsService(BEGIN, [
    ...[id, caller, quotaOf(request), request.caller.role, address.bucket, address.name, ownerOf(request.caller)],
    ...[JSON.stringify(about), String(bytes), String(maxBytes)],
  ]);
}

/** Ends an upload, which then no longer counts. */
export async function endUpload(run: RunStatement, id: string): Promise<void> {
  await asLogin(run)({ text: END, values: [id] });
}
