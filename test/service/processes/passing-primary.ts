import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { rescueConnections } from "../../../service/processes/passed-connections.ts";

// A primary with two workers, as the service makes them. It kills the one that was passed a connection and never acknowledged it.
if (cluster.isPrimary) {
  cluster.setupPrimary({ serialization: "advanced" });
  const fork = (): Worker => {
    const worker = cluster.fork();
    rescueConnections(worker);
    return worker;
  };
  const stopped = fork();
  const [{ port }] = await once(stopped, "listening");
  stopped.process.kill("SIGSTOP");
  // The only worker is passed the connection, and cannot acknowledge it.
  const client = connect(port, "127.0.0.1");
  await once(client, "connect");
  client.write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const other = fork();
  await once(other, "listening");
  stopped.process.kill("SIGKILL");
  let text = "";
  for await (const chunk of client) text += chunk;
  console.log(text.includes("worker 2") ? "rescued" : `not rescued: ${text}`);
  other.kill();
} else {
  createServer((_request, response) => void response.end(`worker ${cluster.worker!.id}`)).listen(0, "127.0.0.1");
}
