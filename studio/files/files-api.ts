import { request, requestJson } from "../api/client.ts";

export type StoredBucket = {
  readonly id: string;
  readonly public: boolean;
  readonly file_size_limit: number | null;
  readonly created_at: string;
};

/** An entry of a folder. */
export type FolderEntry = {
  readonly name: string;
  /** The id; null for a folder. */
  readonly id: string | null;
  readonly updated_at: string | null;
  readonly metadata: { readonly size?: number; readonly mimetype?: string } | null;
};

export const PAGE_SIZE = 100;
const STORAGE = "/storage/v1";
const SIGNED_SECONDS = 3600;
const TEXT_PREVIEW_BYTES = 64 * 1024;

function pathOf(bucket: string, name: string): string {
  return [bucket, ...name.split("/")].map(encodeURIComponent).join("/");
}

export function listBuckets(signal: AbortSignal): Promise<readonly StoredBucket[]> {
  return requestJson<readonly StoredBucket[]>(`${STORAGE}/bucket`, { signal });
}

export async function createBucket(id: string, isPublic: boolean): Promise<void> {
  await request(`${STORAGE}/bucket`, { method: "POST", body: { id, name: id, public: isPublic } });
}

export async function deleteBucket(id: string): Promise<void> {
  await request(`${STORAGE}/bucket/${encodeURIComponent(id)}`, { method: "DELETE" });
}

export function listFolder(
  bucket: string,
  folder: string,
  limit: number,
  signal: AbortSignal,
): Promise<readonly FolderEntry[]> {
  const body = { prefix: folder, limit, offset: 0, sortBy: { column: "name", order: "asc" } };
  return requestJson(`${STORAGE}/object/list/${encodeURIComponent(bucket)}`, { method: "POST", body, signal });
}

export async function uploadFile(bucket: string, name: string, file: File): Promise<void> {
  const headers = { "Content-Type": file.type || "application/octet-stream", "Cache-Control": "max-age=3600" };
  await request(`${STORAGE}/object/${pathOf(bucket, name)}`, { method: "POST", headers, body: file });
}

/** Deletes a file; returns false if policies hide the file. */
export async function deleteFile(bucket: string, name: string): Promise<boolean> {
  const path = `${STORAGE}/object/${encodeURIComponent(bucket)}`;
  const removed = await requestJson<readonly unknown[]>(path, { method: "DELETE", body: { prefixes: [name] } });
  return removed.length > 0;
}

/** Returns an address that everybody may read: permanently in a public bucket, otherwise for an hour. */
export async function makeAddress({ id, public: isPublic }: StoredBucket, name: string): Promise<string> {
  if (isPublic) return new URL(`${STORAGE}/object/public/${pathOf(id, name)}`, document.baseURI).href;
  return signFile(id, name);
}

/** Returns a signed address, because the browser loads images without a token. */
export async function signFile(bucket: string, name: string): Promise<string> {
  const path = `${STORAGE}/object/sign/${pathOf(bucket, name)}`;
  const body = { expiresIn: SIGNED_SECONDS };
  const { signedURL } = await requestJson<{ signedURL: string }>(path, { method: "POST", body });
  const token = new URLSearchParams(signedURL.slice(signedURL.lastIndexOf("?"))).get("token") ?? "";
  return new URL(`${path}?token=${token}`, document.baseURI).href;
}

/** Reads the beginning of a text. */
export async function readText(bucket: string, name: string, signal: AbortSignal): Promise<string> {
  const headers = { Range: `bytes=0-${TEXT_PREVIEW_BYTES - 1}` };
  return (await request(`${STORAGE}/object/authenticated/${pathOf(bucket, name)}`, { headers, signal })).text();
}
