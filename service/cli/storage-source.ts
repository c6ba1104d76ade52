/** A storage service that speaks Supabase's protocol, as its service role sees it. */
export type StorageSource = {
  listBuckets(): Promise<readonly SourceBucket[]>;
  /** All objects of a bucket, in portions. */
  listObjects(bucket: string): AsyncIterable<readonly ListedObject[]>;
  open(bucket: string, name: string): Promise<OpenedObject>;
};

export type SourceBucket = {
  readonly id: string;
  readonly name: string;
  readonly public: boolean;
  readonly file_size_limit?: number | null;
  readonly allowed_mime_types?: readonly string[] | null;
  readonly created_at?: string;
};

/** An object of the source, with its whole name. */
export type ListedObject = {
  readonly name: string;
  readonly created_at: string;
  readonly updated_at: string;
  readonly last_accessed_at: string | null;
  readonly metadata: Readonly<{ eTag?: string; size?: number; [other: string]: unknown }> | null;
};

type OpenedObject = {
  readonly userMetadata: Readonly<Record<string, unknown>> | null;
  readonly content: AsyncIterable<Buffer>;
};

const PAGE_SIZE = 1000;
const ATTEMPTS = 4;

/** `url` is that of the project: `https://….supabase.co`. */
export function makeStorageSource(url: string, serviceKey: string): StorageSource {
  const base = `${url.replace(/\/+$/, "")}/storage/v1`;
  const headers = { apikey: serviceKey, Authorization: `Bearer ${serviceKey}` };

  async function send(path: string, body?: unknown): Promise<Response> {
    const init: RequestInit =
      body === undefined
        ? { headers }
        : { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body) };
    for (let attempt = 1; ; attempt++) {
      const response = await fetch(`${base}${path}`, init).catch((error: unknown) => {
        if (attempt === ATTEMPTS) throw new Error(`${base} cannot be reached: ${reasonOf(error)}`, { cause: error });
        return null;
      });
      if (response?.ok) return response;
      const isTemporary = response === null || response.status === 429 || response.status >= 500;
      if (isTemporary && attempt < ATTEMPTS) {
        await response?.body?.cancel();
        await new Promise((resolve) => setTimeout(resolve, 250 * 2 ** attempt));
        continue;
      }
      const text = await response!.text();
      throw new Error(`${base}${path} is answered ${response!.status}: ${text.slice(0, 300)}`);
    }
  }

  async function* listFolder(bucket: string, prefix: string): AsyncIterable<readonly ListedObject[]> {
    for (let offset = 0; ; offset += PAGE_SIZE) {
      const body = { prefix, limit: PAGE_SIZE, offset, sortBy: { column: "name", order: "asc" } };
      const response = await send(`/object/list/${encodeURIComponent(bucket)}`, body);
      const entries = (await response.json()) as (ListedObject & { readonly id: string | null })[];
      const whole = (name: string) => (prefix === "" ? name : `${prefix}/${name}`);
      const objects = entries.filter(({ id }) => id !== null);
      if (objects.length > 0) yield objects.map((object) => ({ ...object, name: whole(object.name) }));
      for (const { id, name } of entries) if (id === null) yield* listFolder(bucket, whole(name));
      if (entries.length < PAGE_SIZE) return;
    }
  }

  return {
    listBuckets: async () => (await send("/bucket")).json() as Promise<readonly SourceBucket[]>,
    listObjects: (bucket) => listFolder(bucket, ""),
    async open(bucket, name) {
      const path = [bucket, ...name.split("/")].map(encodeURIComponent).join("/");
      const about = (await (await send(`/object/info/authenticated/${path}`)).json()) as { metadata?: unknown };
      const { body } = await send(`/object/authenticated/${path}`);
      const userMetadata = (about.metadata ?? null) as OpenedObject["userMetadata"];
      return { userMetadata, content: toBuffers(body) };
    },
  };
}

async function* toBuffers(body: ReadableStream<Uint8Array> | null): AsyncIterable<Buffer> {
  for await (const chunk of body ?? []) yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? cause.message : message;
}
