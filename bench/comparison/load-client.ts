// The process of the load generator. It writes HTTP/1.1 itself on plain sockets, because on a small machine every microsecond that
// the client takes is taken from the server. Each connection sends its next request as soon as it has a response.

import { Socket } from "node:net";
import type { Load, LoadResult } from "./load.ts";

/** The connections share the buffer in turn: node fills it and calls back before it reads from the next connection. */
const readBuffer = Buffer.allocUnsafeSlow(256 * 1024);
const HEAD_END = Buffer.from("\r\n\r\n");
/** JSON has no raw line break in its strings, so no body of ours contains it. */
const LAST_CHUNK = "0\r\n\r\n";

process.on("message", async (load: Load) => process.send!(await run(load)));

async function run(load: Load): Promise<LoadResult> {
  const latencies: number[] = [];
  const used = process.cpuUsage();
  const startedAt = performance.now();
  const end = startedAt + 1_000 * load.seconds;
  const connections = Array.from({ length: load.connections }, () => askUntil(end, load, latencies));
  const outcomes = await Promise.allSettled(connections);
  const failure = outcomes.find((outcome) => outcome.status === "rejected");
  const seconds = (performance.now() - startedAt) / 1_000;
  const { user, system } = process.cpuUsage(used);
  const sorted = Float64Array.from(latencies).sort();
  const percentile = (share: number) => sorted[Math.floor(share * (sorted.length - 1))] ?? 0;
  return {
    requests: sorted.length,
    seconds,
    p50: percentile(0.5),
    p99: percentile(0.99),
    longest: percentile(1),
    processorTime: user + system,
    failure: failure ? String(failure.reason) : null,
  };
}

/** The number of the next token for all connections. When a token comes round again, caches have long forgotten it. */
let turn = 0;

function askUntil(end: number, { port, request, tokens, values }: Load, latencies: number[]): Promise<void> {
  const [beforeValue, beforeToken, rest] = request;
  return new Promise((resolve, reject) => {
    let askedAt = 0;
    let answer = new Answer();
    const ask = () => {
      const value = values ? values.step * Math.floor(Math.random() * values.count) : "";
      const token = tokens[turn++ % tokens.length]!;
      askedAt = performance.now();
      socket.write(beforeValue + value + beforeToken + token + rest, "latin1");
    };
    const take = (length: number): boolean => {
      try {
        if (!answer.take(readBuffer.subarray(0, length))) return true;
      } catch (error) {
        socket.destroy(error as Error);
        return true;
      }
      const now = performance.now();
      latencies.push(now - askedAt);
      answer = new Answer();
      if (now < end) ask();
      else socket.end();
      return true;
    };
    const socket = new Socket({ onread: { buffer: readBuffer, callback: take } });
    socket.setNoDelay(true);
    socket.once("error", reject);
    socket.once("close", () => resolve());
    socket.connect(port, "127.0.0.1", ask);
  });
}

/** Reads one response as it arrives. */
class Answer {
  #head = "";
  /** The missing bytes of the body; null if the last chunk marks the end. */
  #missing: number | null = 0;
  #tail = "";

  /** Reads bytes of the response; returns true if these were the last. */
  take(bytes: Buffer): boolean {
    if (this.#head !== "") return this.#takeBody(bytes);
    const headEnd = bytes.indexOf(HEAD_END);
    if (headEnd < 0) throw new Error("An answer whose head comes in pieces is beyond this client");
    this.#head = bytes.toString("latin1", 0, headEnd);
    const body = bytes.subarray(headEnd + HEAD_END.length);
    if (!this.#head.startsWith("HTTP/1.1 2")) throw new Error(`${this.#head}\n${body}`);
    const length = /\r\ncontent-length: (\d+)/i.exec(this.#head)?.[1];
    this.#missing = length !== undefined ? Number(length) : /\r\ntransfer-encoding:/i.test(this.#head) ? null : 0;
    return this.#takeBody(body);
  }

  #takeBody(bytes: Buffer): boolean {
    if (this.#missing !== null) {
      this.#missing -= bytes.length;
      return this.#missing === 0;
    }
    this.#tail = (this.#tail + bytes.toString("latin1", Math.max(0, bytes.length - LAST_CHUNK.length))).slice(
      -LAST_CHUNK.length,
    );
    return this.#tail === LAST_CHUNK;
  }
}
