// The name by which supervisors of earlier releases start `server.js`.
await import("./server.js");

export {};
