import { connect, type Socket } from "node:net";
import { failureOf } from "./attack.ts";

const PIECE = Buffer.alloc(64 * 1024, " ");

/** Opens a socket. Resolves with the outcome: the status of a response, `closed`, or `held` until the end time. */
export function holdSocket({ hostname, port }: URL, until: number, use: (socket: Socket) => void): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    const end = (how: string) => {
      clearTimeout(stop);
      socket.destroy();
      resolve(how);
    };
    const stop = setTimeout(() => end("held"), Math.max(0, until - Date.now()));
    socket.on("error", (error) => end(failureOf(error)));
    socket.on("close", () => end("closed"));
    socket.on("data", (data) => end(data.toString("latin1", 9, 12)));
    use(socket);
  });
}

/** Sends this many bytes of a body. */
export function sendBytes(socket: Socket, bytes: number): void {
  let missing = bytes;
  const send = () => {
    while (missing > 0 && !socket.destroyed) {
      const piece = PIECE.subarray(0, missing);
      missing -= piece.length;
      if (!socket.write(piece)) return;
    }
  };
  socket.on("drain", send);
  socket.once("connect", send);
}
