import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import aws4 from "aws4";
import { XMLParser } from "fast-xml-parser";
import type { Dispatcher } from "undici";

export type S3Location = {
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
};

export type S3Object = { readonly key: string; readonly bytes: number; readonly changedAt: Date };

type S3ClientRequest = {
  readonly method: "GET" | "HEAD" | "PUT" | "DELETE";
  /** The key of an object; an empty text stands for the bucket. */
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Opens the body for each attempt. */
  readonly body?: () => Readable | Buffer;
  readonly sha256?: string;
};

const NOTHING = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const ATTEMPTS = 4;
const FIRST_DELAY_MS = 200;
const HEADERS_TIMEOUT_MS = 60_000;

const parser = new XMLParser({ ignoreAttributes: true, parseTagValue: false, isArray: (name) => name === "Contents" });

/** The few requests to an S3 service that a file store needs. Bodies are streams; nothing is kept in memory. */
export class S3Client {
  readonly #location: S3Location;
  readonly #origin: string;
  readonly #root: string;

  constructor(location: S3Location) {
    const { origin, pathname } = new URL(location.endpoint);
    this.#location = location;
    this.#origin = origin;
    this.#root = `${pathname.replace(/\/$/, "")}/${encodeURIComponent(location.bucket)}`;
  }

  /** Stores an object; it is safe when the promise resolves. */
  async put(key: string, body: () => Readable | Buffer, about: { readonly bytes: number; readonly sha256: string }) {
    const headers = { "Content-Length": String(about.bytes) };
    await this.#drain({ method: "PUT", key, headers, body, sha256: about.sha256 });
  }

  /** Returns the size; null if there is no such object. */
  async size(key: string): Promise<number | null> {
    const response = await this.#send({ method: "HEAD", key }, [404]);
    await response.body.dump();
    return response.statusCode === 404 ? null : Number(response.headers["content-length"]);
  }

  /** Returns null if there is no such object. */
  async get(key: string, range?: { readonly start: number; readonly end: number }): Promise<Readable | null> {
    const headers: Record<string, string> = range ? { Range: `bytes=${range.start}-${range.end}` } : {};
    const response = await this.#send({ method: "GET", key, headers }, [404]);
    if (response.statusCode !== 404) return response.body;
    await response.body.dump();
    return null;
  }

  async delete(key: string): Promise<void> {
    await this.#drain({ method: "DELETE", key }, [404]);
  }

  /** Lists objects in portions. */
  async *list(prefix: string): AsyncGenerator<readonly S3Object[]> {
    for (let token: string | null = null, isFirst = true; isFirst || token !== null; isFirst = false) {
      const query = { "list-type": "2", prefix, ...(token !== null && { "continuation-token": token }) };
      const { body } = await this.#send({ method: "GET", key: "", query });
      const { ListBucketResult: page } = parser.parse(await body.text()) as { ListBucketResult: ListedPage };
      token = page.IsTruncated === "true" ? (page.NextContinuationToken ?? null) : null;
      yield (page.Contents ?? []).map(({ Key, Size, LastModified }) => ({
        key: Key,
        bytes: Number(Size),
        changedAt: new Date(LastModified),
      }));
    }
  }

  async #drain(asked: S3ClientRequest, accepted: readonly number[] = []): Promise<void> {
    const { body } = await this.#send(asked, accepted);
    await body.dump();
  }

  /** Retries a request after a temporary failure. */
  async #send(asked: S3ClientRequest, accepted: readonly number[] = []): Promise<Dispatcher.ResponseData> {
    for (let attempt = 1; ; attempt++) {
      const isLast = attempt === ATTEMPTS;
      try {
        const response = await this.#sendOnce(asked);
        const { statusCode: status } = response;
        if (status < 300 || accepted.includes(status)) return response;
        const text = await response.body.text();
        if (isLast || (status < 500 && status !== 429)) throw new S3Error(status, asked, text);
      } catch (error) {
        if (isLast || error instanceof S3Error) throw error;
      }
      await delay(FIRST_DELAY_MS * 2 ** (attempt - 1) * (0.5 + Math.random()));
    }
  }

  async #sendOnce({ method, key, query = {}, headers = {}, body, sha256 = NOTHING }: S3ClientRequest) {
    const { region, accessKeyId, secretAccessKey } = this.#location;
    const search = new URLSearchParams(query).toString();
    const path = `${this.#root}${key === "" ? "" : `/${key}`}${search === "" ? "" : `?${search}`}`;
    const signed = aws4.sign(
      {
        ...{ method, path, region, service: "s3", host: new URL(this.#origin).host },
        headers: { ...headers, "X-Amz-Content-Sha256": sha256 },
      },
      { accessKeyId, secretAccessKey },
    );
    const { request } = await import("undici");
    return request(`${this.#origin}${path}`, {
      ...{ method, headersTimeout: HEADERS_TIMEOUT_MS },
      headers: signed.headers as Record<string, string>,
      ...(body && { body: body() }),
    });
  }
}

type ListedPage = {
  readonly Contents?: readonly { readonly Key: string; readonly Size: string; readonly LastModified: string }[];
  readonly IsTruncated?: string;
  readonly NextContinuationToken?: string;
};

/** The error response of the S3 service, for the log. */
class S3Error extends Error {
  override name = "S3Error";
  readonly status: number;

  constructor(status: number, { method, key }: Pick<S3ClientRequest, "method" | "key">, text: string) {
    super(`The S3 service has answered ${status} to ${method} ${key}: ${text.slice(0, 500)}`);
    this.status = status;
  }
}
