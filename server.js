// JavaScript, as what it imports first: the module of Node that strips types takes 20 MB, and is not loaded if all modules are in the cache.

// Without a handler Node opens its inspector on SIGUSR1, by which any user of this machine could run code here. The service handles the signal
// once it runs; this module imports it dynamically, because Node evaluates a module only when all its static imports are loaded.
process.on("SIGUSR1", () => {});
await import("./service/cli/compile-cache.js");
await import("./service/start-service.ts");
