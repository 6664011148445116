// Perturbs tensors as the harness does, on the host: for each request on standard input the bytes of the result.
// A request is a line `INDEX PERTURBATION DTYPE CHANGE MIRROR ELEMENTS`, followed by the tensor's bytes.
#include <iostream>
#include <kernelblaster/perturbation.hpp>
#include <sstream>

int main() {
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words(line);
        size_t index = 0;
        uint64_t perturbation = 0;
        kb::Tensor tensor;
        words >> index >> perturbation >> tensor.dtype >> tensor.change >> tensor.mirror >> tensor.bytes;
        tensor.element_bytes = kb::element_bytes(tensor.dtype);
        tensor.bytes *= tensor.element_bytes;
        std::vector<char> drawn(tensor.bytes), found(tensor.bytes);
        std::cin.read(drawn.data(), static_cast<std::streamsize>(drawn.size()));
        for (const kb::Piece& piece : kb::pieces(tensor, index, perturbation)) {
            std::memcpy(found.data() + piece.to, drawn.data() + piece.from, piece.bytes);
            if (piece.altered) kb::alter(found.data() + piece.to, piece.bytes, tensor);
        }
        std::cout.write(found.data(), static_cast<std::streamsize>(found.size())).flush();
    }
}
