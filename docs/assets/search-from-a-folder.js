// A page that is opened from a folder may not start a worker. The search then runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.addEventListener("load", () => this.begin(frame.contentWindow, url), { once: true });
      document.body.append(frame);
    }

    begin(inside, url) {
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...urls) => urls.reduce((before, one) => before.then(() => this.load(inside, one)), Promise.resolve());
      this.load(inside, url).then(() => {
        this.inside = inside;
        this.waiting.forEach((data) => this.postMessage(data));
      });
    }

    load(inside, url) {
      return new Promise((loaded, failed) => {
        const script = inside.document.createElement("script");
        script.addEventListener("load", loaded);
        script.addEventListener("error", failed);
        script.src = url;
        inside.document.body.append(script);
      });
    }

    postMessage(data) {
      if (this.inside) {
        this.inside.dispatchEvent(new MessageEvent("message", { data }));
      } else {
        this.waiting.push(data);
      }
    }

    terminate() {}
  };
}
